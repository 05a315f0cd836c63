"""Define `enable platform`: list platforms, and check a platform file."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from enable import completion
from enable.help import Command, examples
from enable.options import AsJson, Library

app = typer.Typer(help="List platforms, and check a platform file.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list", cls=Command, epilog=examples({"List the platforms": "enable platform list"}))
def list_(as_json: AsJson = False) -> None:
    """List the available platforms.

    An option --platform takes one of these names, or the path to a YAML file.
    """
    from enable.cover.platform_check import listed
    from enable.tables import table

    typer.echo(json.dumps({"platforms": listed()}) if as_json else table(listed()))


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Check your own platform file": "enable platform check ./mychip.yaml",
            "Check that this machine can compile for NVIDIA GPUs and use one": "enable platform check cuda",
        }
    ),
)
def check(
    context: typer.Context,
    platform: Annotated[
        str,
        typer.Argument(
            metavar="PLATFORM", autocompletion=completion.platforms, help="A platform name, or the path to a YAML file."
        ),
    ],
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Check a platform's file, compiler, device and kernels.

    Read the file, compile and run a kernel, and check the library's kernels against the platform's dialect. Mistakes
    in the file are reported with their lines. Exit status 1 if a target does not compile or the kernel does not run.
    """
    from enable.cover import platform_check
    from enable.workspace import Workspace
    from verify import platforms

    workspace = Workspace(context.obj)
    if not as_json:
        typer.echo(platform_check.head(platforms.load(platform)))
    result = platform_check.check(
        platform,
        lambda known: workspace.library(library, known),
        lambda step: None if as_json else typer.echo(platform_check.step_line(step)),
    )
    typer.echo(json.dumps(result.as_json()) if as_json else platform_check.library_lines(result, workspace))
    raise typer.Exit(0 if result.passed else 1)
