"""Define `enable tune`: search for a faster kernel on a trace's shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.naming import full
from enable.options import (
    BASE_URL_HELP,
    LLM_HELP,
    LLM_MODEL_HELP,
    PLATFORM,
    AsJson,
    FewCases,
    Library,
    Platform,
    Recordings,
    typed,
)
from traces import UserError, jsonable

CALLS = 12  # default limit on LLM calls if no budget is given

EPILOG = examples(
    {
        "Explain why the current kernel is slow": "enable tune sum --trace nanogpt --platform cuda --explain",
        "Search with an OpenAI-compatible model": (
            "enable tune sum --trace nanogpt --platform cuda --llm openai --model gpt-5"
        ),
        "Time the kernel's declared settings": (
            "enable tune nll_loss_backward --trace nanogpt --platform cuda --no-llm"
        ),
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    op: Annotated[
        str,
        typer.Argument(
            metavar="OP",
            autocompletion=completion.operators,
            parser=full,
            help="An overload, for example aten::sum, sum or fused::NAME.",
        ),
    ],
    trace: Annotated[
        str,
        typer.Option(
            "--trace",  # Typer 0.27 would call it --TRACE, as its metavar
            metavar="TRACE",
            autocompletion=completion.traces,
            help="Trace with the shapes to optimize for.",
        ),
    ],
    calls: Annotated[
        int | None,
        typer.Option(min=1, show_default=f"{CALLS} if there is no other limit", help="Maximum LLM calls."),
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Maximum tokens.")] = None,
    money: Annotated[float | None, typer.Option(help="Maximum cost; needs --prices.")] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="PROMPT,ANSWER", help="Prices per million prompt tokens and per million answer tokens."),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Maximum minutes.")] = None,
    no_llm: Annotated[
        bool, typer.Option("--no-llm", help="Time the settings that the kernel declares, without a language model.")
    ] = False,
    no_skills: Annotated[
        bool, typer.Option("--no-skills", help="Leave lessons from earlier searches out of the prompts.")
    ] = False,
    llm: Annotated[str, typer.Option(help=LLM_HELP)] = "turns",
    llm_model: Annotated[str | None, typer.Option("--model", help=LLM_MODEL_HELP)] = None,
    base_url: Annotated[str | None, typer.Option(envvar="OPENAI_BASE_URL", help=BASE_URL_HELP)] = None,
    recordings: Recordings = None,
    times: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use the times in this file and do not measure.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain why the current kernel is slow, and stop.")
    ] = False,
    few_cases: FewCases = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start a new search and do not continue an earlier one.")
    ] = False,
    platform: Platform = PLATFORM,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Search for a faster kernel on the shapes of a trace.

    Candidates form a tree: a language model derives each from an earlier candidate or from the best two, or writes it
    from scratch, and learns why it is slow. Every candidate is judged in full before it is timed. A candidate is
    accepted if its speedup, as the geometric mean over all shapes, is at least 3 % after noise is subtracted, and no
    shape is more than 5 % slower.

    Exit status 1 if no candidate was accepted.
    """
    from enable.tune.lines import tuned_lines
    from enable.tune.tune_run import explain as explained
    from enable.tune.tune_run import tune
    from enable.tune.tuning import FAILED, NOT_FASTER, TuneChoice
    from enable.workspace import Workspace
    from generate.kernel_search.search import SearchLimits
    from generate.llm import FREE, Options, Price

    for name, value in (("money", money), ("minutes", minutes)):
        if value is not None and value <= 0:
            raise UserError(f"--{name} {value:g}: nothing can be tried with that; name more than 0")
    if money is not None and prices is None:
        raise UserError(f"--money {money:g}: the price for tokens is unknown; name it: --prices PROMPT,ANSWER")
    if (calls, tokens, money, minutes) == (None,) * 4:
        calls = CALLS
    limits = SearchLimits(calls, tokens, money, minutes)
    assert context.parent is not None
    workspace = Workspace(context.obj)
    again = workspace.command("tune", *typed(context, without=("restart",)))
    price = Price(*_price(prices)) if prices else FREE
    options = Options(llm_model, base_url, recordings)
    choice = TuneChoice(
        op, trace, llm, options, limits, price, not no_skills, not no_llm, times, few_cases, restart, again
    )
    if explain:
        typer.echo(explained(workspace, library, platform, choice))
        return
    result = tune(workspace, library, platform, choice)
    typer.echo(json.dumps(jsonable(result)) if as_json else tuned_lines(result))
    if result.exit == FAILED:
        raise UserError(result.why)
    raise typer.Exit(1 if result.exit == NOT_FASTER else 0)


def _price(prices: str) -> tuple[float, float]:
    """Parse PROMPT,ANSWER.

    Raises:
        UserError: If the text is not two numbers.
    """
    try:
        prompt, answer = map(float, prices.split(","))
    except ValueError as error:
        raise UserError(f"--prices {prices}: not two numbers such as 1.25,10") from error
    return prompt, answer
