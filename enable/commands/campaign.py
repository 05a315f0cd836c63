"""Define `enable campaign`: list campaigns and report their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable.options import AsJson

app = typer.Typer(help="Look at campaigns of generation.", no_args_is_help=True, rich_markup_mode=None)


@app.command(name="list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """Every campaign of the workspace, with how many of its operators passed."""
    from enable.campaigns.tables import list_lines, listed
    from enable.workspace import Workspace

    campaigns = listed(Workspace(context.obj))
    typer.echo(json.dumps({"campaigns": campaigns}) if as_json else list_lines(campaigns))


@app.command()
def report(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Campaigns; all of the workspace if none is given.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw coverage against LLM calls to this .svg or .png.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the results of campaigns, side by side and together.

    Coverage by category and model, operators passed within so many LLM calls, what each kind of feedback led to, tokens
    and time, settings that differ, the union over campaigns, and the causes of failure across operators.
    """
    from enable.campaigns.report import draw, read
    from enable.campaigns.report import report as made
    from enable.campaigns.tables import listed, report_lines
    from enable.campaigns.work import place_of
    from enable.workspace import Workspace
    from traces import UserError

    workspace = Workspace(context.obj)
    chosen = names or [row["campaign"] for row in listed(workspace)]
    if not chosen:
        raise UserError("no campaign here yet; to begin one, see: enable generate --help")
    campaigns = [read(place_of(workspace, name)) for name in chosen]
    if plot is not None:
        draw(campaigns, plot)
    results = made(campaigns)
    page = workspace.command("report", *(word for name in chosen for word in ("--campaign", name)))
    typer.echo(json.dumps(results) if as_json else f"{report_lines(results)}\n  to look at it  {page}")
