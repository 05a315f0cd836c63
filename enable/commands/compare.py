"""Define `enable compare`: print the library's coverage beside published numbers."""

from __future__ import annotations

import json

import typer

from enable.help import examples
from enable.options import PLATFORM, AsJson, Library, Markdown, Platform

EPILOG = examples(
    {
        "Print the comparison": "enable compare",
        "Print it as a Markdown table, for kernels judged on a GPU": "enable compare --platform cuda --markdown",
    }
)


def command(
    context: typer.Context,
    as_json: AsJson = False,
    markdown: Markdown = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Compare the library's coverage with published numbers.

    Print a row for each trace of nanogpt, dlrm or opinfo in the workspace, with the numbers that other systems
    published. Kernels without a verdict on the platform are judged first; existing verdicts are reused.
    """
    from enable.cover.published import rows
    from enable.cover.session import Session
    from enable.tables import markdown_table, table
    from enable.workspace import Workspace

    with Session(Workspace(context.obj), library, platform) as session:
        comparison = rows(session)
    text = markdown_table if markdown else table
    typer.echo(json.dumps({"platform": platform, "rows": comparison}) if as_json else text(comparison))
