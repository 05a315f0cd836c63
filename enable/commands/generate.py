"""Define `enable generate`: run a campaign in which a language model writes kernels for many operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.options import (
    DIALOG_CALLS_HELP,
    DIALOGS_HELP,
    LLM_HELP,
    LLM_MODEL_HELP,
    TEMPERATURE_HELP,
    AsJson,
    FewCases,
    Library,
    typed,
)
from traces.program import program_words

EPILOG = examples(
    {
        "Show the operators that a campaign would work on": 'enable generate --query "lacking in opinfo" --dry-run',
        "Write two kernels with an OpenAI-compatible model": (
            "enable generate --op gelu --op aten::exp --llm openai --model gpt-5"
        ),
        "Run the campaign that a file describes, or continue it": "enable generate --config campaign.toml",
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    op: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.operators,
            help="An overload, or an operator of OpInfo; may be repeated.",
        ),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(help="Select a trace's operators: 'lacking in TRACE', 'failing in TRACE' or 'every in TRACE'."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file with the campaign's settings; options take precedence over it."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Campaign name.", show_default="derived from its settings")] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.traces, show_default="opinfo", help="Trace with the test cases for --op."
        ),
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option(help="Select only operators in this category; may be repeated.")
    ] = None,
    most: Annotated[int | None, typer.Option(min=1, help="Maximum operators.", show_default="unlimited")] = None,
    dtype: Annotated[
        list[str] | None,
        typer.Option(help="Test only cases with this dtype; may be repeated.", show_default="all that were recorded"),
    ] = None,
    llm: Annotated[str | None, typer.Option(show_default="replay", help=LLM_HELP)] = None,
    llm_model: Annotated[str | None, typer.Option("--model", help=LLM_MODEL_HELP)] = None,
    dialogs: Annotated[int | None, typer.Option(min=1, show_default="3", help=DIALOGS_HELP)] = None,
    calls: Annotated[int | None, typer.Option(min=1, show_default="15", help=DIALOG_CALLS_HELP)] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, show_default="1.0", help=TEMPERATURE_HELP)] = None,
    platform: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.platforms, show_default="sim", help="Platform that runs the candidates."
        ),
    ] = None,
    self_consistent: Annotated[
        bool,
        typer.Option(
            "--self-consistent", help="Let wrappers call operators for which the library has a verified kernel."
        ),
    ] = False,
    few_cases: FewCases = False,
    workers: Annotated[int | None, typer.Option(min=1, show_default="4", help="Dialogs in parallel.")] = None,
    engine: Annotated[
        str | None, typer.Option(show_default="local", help="local, or ray: run the dialogs on a Ray cluster.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster's address.", show_default="a new one on this machine")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the settings and operators, and stop.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start from the beginning; the old campaign is kept under another name.")
    ] = False,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Have a language model write kernels for many operators.

    Such a run is called a campaign. Its operators come from a trace, usually the one of `enable capture opinfo`. Repeat
    the command to continue a campaign that stopped; operators that were aborted, for example by a failing endpoint, are
    tried again.

    Exit status 1 if an operator did not pass, and 0 if all passed or wait for manual answers.
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
    with stoppable([*program_words(), *words]):
        result = run_campaign(workspace, library, campaign, words, restart)
    next_ = workspace.command("campaign", "report", result["campaign"])
    typer.echo(json.dumps(result) if as_json else campaign_lines(result, next_))
    raise typer.Exit(0 if set(result["exits"]) <= {"PASSED", "WAITING"} else 1)
