"""Define `enable generate`: run a campaign in which a language model writes kernels for many operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable.options import AsJson, FewCases, Library, typed


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    op: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An overload or an operator of OpInfo; may be repeated.")
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(help="Operators of a trace: 'lacking in opinfo', 'failing in nanogpt', 'every in ...'."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="The campaign as a TOML file; options go before it.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the campaign; by default made of what it does.")] = None,
    trace: Annotated[str | None, typer.Option(show_default="opinfo", help="Whose cases --op is tested on.")] = None,
    category: Annotated[list[str] | None, typer.Option(help="Only operators of it; may be repeated.")] = None,
    most: Annotated[int | None, typer.Option(min=1, help="At most so many operators.")] = None,
    dtype: Annotated[list[str] | None, typer.Option(help="Only cases of it; may be repeated.")] = None,
    llm: Annotated[str | None, typer.Option(show_default="replay", help="Provider: replay, openai or manual.")] = None,
    llm_model: Annotated[str | None, typer.Option("--model", help="Model of the provider.")] = None,
    dialogs: Annotated[int | None, typer.Option(min=1, show_default="3", help="Dialogs for an operator.")] = None,
    calls: Annotated[int | None, typer.Option(min=1, show_default="15", help="LLM calls in a dialog.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, show_default="1.0", help="Of the model.")] = None,
    platform: Annotated[str | None, typer.Option(show_default="sim", help="Where candidates run.")] = None,
    self_consistent: Annotated[
        bool, typer.Option("--self-consistent", help="Wrappers may call operators that the library has verified.")
    ] = False,
    few_cases: FewCases = False,
    workers: Annotated[int | None, typer.Option(min=1, show_default="4", help="Dialogs at once.")] = None,
    engine: Annotated[str | None, typer.Option(show_default="local", help="local or ray.")] = None,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster; by default one is started here.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show settings and operators, and do nothing.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew; the old campaign is kept aside.")] = False,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Let a language model write kernels for many operators: a campaign.

    Operators come from a trace, mostly that of `enable capture opinfo`. The same command goes on where a campaign
    stopped; operators that failed for another reason than dialogs are tried again. Exit status 1 if an operator did
    not pass; 0 also where manual answers are awaited.
    """
    from enable.campaigns.campaign import named, plan, run_campaign
    from enable.campaigns.tables import campaign_lines, plan_lines
    from enable.stopping import stoppable
    from enable.workspace import Workspace
    from generate.campaign import load

    campaign = named(
        load(
            config,
            operators=tuple(op or ()),
            query=query,
            name=name,
            trace=trace,
            categories=tuple(category or ()),
            most=most,
            dtypes=tuple(dtype or ()),
            platform=platform,
            self_consistent=self_consistent or None,
            few_cases=few_cases or None,
            workers=workers,
            engine=engine,
            address=address,
            model__provider=llm,
            model__name=llm_model,
            model__temperature=temperature,
            limits__dialogs=dialogs,
            limits__calls=calls,
        )
    )
    workspace = Workspace(context.obj)
    if dry_run:
        result = plan(workspace, library, campaign)
        typer.echo(json.dumps(result) if as_json else plan_lines(result))
        return
    assert context.parent is not None
    words = [*typed(context.parent), "generate", *typed(context, without=("restart",))]
    with stoppable(["enable", *words]):
        result = run_campaign(workspace, library, campaign, words, restart)
    next_ = workspace.command("campaign", "report", result["campaign"])
    typer.echo(json.dumps(result) if as_json else campaign_lines(result, next_))
    raise typer.Exit(0 if set(result["exits"]) <= {"PASSED", "WAITING"} else 1)
