"""Define `enable compare`: print the library's coverage beside published numbers."""

from __future__ import annotations

import json

import typer

from enable.options import PLATFORM, AsJson, Library, Markdown, Platform


def command(
    context: typer.Context,
    as_json: AsJson = False,
    markdown: Markdown = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Print what the library covers beside published numbers of other systems.

    A row for each trace of the workspace that is of nanogpt, dlrm or opinfo. Verdicts are kept; what was not judged on
    the platform yet is judged now.
    """
    from enable.cover.published import rows
    from enable.cover.session import Session
    from enable.tables import markdown_table, table
    from enable.workspace import Workspace

    with Session(Workspace(context.obj), library, platform) as session:
        comparison = rows(session)
    text = markdown_table if markdown else table
    typer.echo(json.dumps({"platform": platform, "rows": comparison}) if as_json else text(comparison))
