"""Define `enable tune`: search for a faster kernel on a trace's shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable.naming import full
from enable.options import PLATFORM, AsJson, FewCases, Library, Platform, typed
from traces import UserError, jsonable

CALLS = 12  # default limit on LLM calls if no budget is given


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    op: Annotated[str, typer.Argument(metavar="OVERLOAD", parser=full, help="E.g. aten::sum or sum, or fused::NAME.")],
    trace: Annotated[str, typer.Option(metavar="NAME", help="The trace whose shapes it is to be fast on.")],
    calls: Annotated[
        int | None, typer.Option(min=1, show_default=f"{CALLS}, if no budget is named", help="LLM calls at the most.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Tokens at the most.")] = None,
    money: Annotated[float | None, typer.Option(help="Money at the most; see --prices.")] = None,
    prices: Annotated[
        str | None, typer.Option(metavar="PROMPT,ANSWER", help="Money for a million tokens of prompts and of answers.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes of work at the most.")] = None,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Time the settings that the kernel declares.")] = False,
    no_skills: Annotated[bool, typer.Option("--no-skills", help="Tell the model nothing of what was learned.")] = False,
    llm: Annotated[str, typer.Option(help="Provider: turns, replay, openai or manual.")] = "turns",
    llm_model: Annotated[str | None, typer.Option("--model", help="Model of the provider.")] = None,
    base_url: Annotated[
        str | None, typer.Option(envvar="OPENAI_BASE_URL", help="Endpoint of the openai provider.")
    ] = None,
    recordings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Recorded answers of the turns and replay providers.")
    ] = None,
    times: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replay with the times of this file; none are taken.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Tell why the kernel in force is slow, and end.")] = False,
    few_cases: FewCases = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew instead of going on with a search.")] = False,
    platform: Platform = PLATFORM,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Search for a faster kernel on the shapes that a trace recorded.

    Candidates form a tree: a language model writes them from one that is there, from the best two, or anew, and is told
    why each is slow. Every candidate is judged in full before it is timed. One is accepted that is 3 % faster beyond
    noise on the geometric mean of all shapes, and on none more than 5 % slower. Exit status 1 if none was.
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
        raise UserError(f"--money {money:g}: nobody knows what tokens cost; name it: --prices PROMPT,ANSWER")
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
