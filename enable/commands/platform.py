"""Define `enable platform`: list platforms, and check a platform file."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from enable.options import AsJson, Library

app = typer.Typer(help="Look at platforms, and check a file of your own.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the platforms of the toolkit; wherever one is named, the path of a YAML file can be."""
    from enable.cover.platform_check import listed
    from enable.tables import table

    typer.echo(json.dumps({"platforms": listed()}) if as_json else table(listed()))


@app.command()
def check(
    context: typer.Context,
    platform: Annotated[str, typer.Argument(help="The path of a YAML file, such as ./mychip.yaml, or a name.")],
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Check a platform: read its file, compile and run a kernel, hold the library against its dialect.

    What is wrong in a file is told with its line. Exit status 1 if a target does not compile or nothing can be run.
    """
    from enable.cover.platform_check import check, lines
    from enable.workspace import Workspace

    workspace = Workspace(context.obj)
    result = check(platform, lambda known: workspace.library(library, known))
    typer.echo(json.dumps(result.as_json()) if as_json else lines(result, workspace))
    raise typer.Exit(0 if result.passed else 1)
