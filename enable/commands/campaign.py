"""Define `enable campaign`: list campaigns and report their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import Command, examples
from enable.options import AsJson
from traces.program import program_name

app = typer.Typer(help="List and compare campaigns of `enable generate`.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list", cls=Command, epilog=examples({"List all campaigns": "enable campaign list"}))
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List campaigns, with the number of operators that passed."""
    from enable.campaigns.tables import list_lines, listed
    from enable.workspace import Workspace

    campaigns = listed(Workspace(context.obj))
    typer.echo(json.dumps({"campaigns": campaigns}) if as_json else list_lines(campaigns))


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Compare all campaigns in the workspace": "enable campaign report",
            "Compare two campaigns, and draw their coverage against LLM calls": (
                "enable campaign report first second --plot calls.svg"
            ),
        }
    ),
)
def report(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CAMPAIGN",
            autocompletion=completion.campaigns,
            help="Campaign names.",
            show_default="all in the workspace",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw coverage against LLM calls into this .svg or .png file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the results of campaigns.

    The report shows coverage by category and model, the operators that passed within a number of LLM calls, the effect
    of each kind of feedback, tokens and time, settings that differ, the union over all campaigns, and the causes of
    failure.
    """
    from enable.campaigns.report import draw, read
    from enable.campaigns.report import report as made
    from enable.campaigns.tables import listed, report_lines
    from enable.campaigns.work import directory_of
    from enable.workspace import Workspace
    from traces import UserError

    workspace = Workspace(context.obj)
    chosen = names or [row["campaign"] for row in listed(workspace)]
    if not chosen:
        raise UserError(f"no campaign here yet; to begin one, see: {program_name()} generate --help")
    campaigns = [read(directory_of(workspace, name)) for name in chosen]
    if plot is not None:
        draw(campaigns, plot)
    results = made(campaigns)
    page = workspace.command("report", *(word for name in chosen for word in ("--campaign", name)))
    typer.echo(json.dumps(results) if as_json else f"{report_lines(results)}\n  report  {page}")
