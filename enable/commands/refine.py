"""Define `enable refine`: let a language model write or repair kernels."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from enable.naming import full
from enable.options import PLATFORM, AsJson, FewCases, Library, Platform, typed


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="A captured model; every trace of the workspace if not given.")
    ] = None,
    only_failing: Annotated[bool, typer.Option("--only-failing", help="Refine what coverage finds failing.")] = False,
    op: Annotated[
        str | None, typer.Option(metavar="NAME", parser=full, help="Refine this overload, e.g. aten::gelu or gelu.")
    ] = None,
    llm: Annotated[str, typer.Option(help="Provider: replay, openai or manual.")] = "replay",
    llm_model: Annotated[str | None, typer.Option("--model", help="Model of the provider.")] = None,
    base_url: Annotated[
        str | None, typer.Option(envvar="OPENAI_BASE_URL", help="Endpoint of the openai provider.")
    ] = None,
    # The defaults are those of generate.machine.DialogLimits. It is not imported here, because every command imports
    # this module, and `enable capture` runs in one process with user code, which may have its own module `generate`.
    dialogs: Annotated[int | None, typer.Option(min=1, show_default="3", help="Dialogs for an operator.")] = None,
    calls: Annotated[int | None, typer.Option(min=1, show_default="15", help="LLM calls in a dialog.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, show_default="1.0", help="Of the model.")] = None,
    few_cases: FewCases = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew instead of going on with a run.")] = False,
    platform: Platform = PLATFORM,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Let a language model write or mend what fails.

    Each operator goes through LLM -> lint -> compile -> test -> feedback -> LLM until every recorded case passes. An
    accepted kernel goes to kernels/ of the workspace. Exit status 1 if an operator did not pass; 0
    also where a manual answer is awaited.
    """
    from enable.refine.refining import RefineChoice, refine
    from enable.tables import refinement_lines
    from enable.workspace import Workspace
    from generate.llm import Options
    from generate.machine import DialogLimits

    if not only_failing and not op:
        raise typer.BadParameter("say what to refine: --only-failing, or --op NAME")
    limit_options = {"dialogs": dialogs, "calls": calls, "temperature": temperature}
    limits = DialogLimits(**{name: value for name, value in limit_options.items() if value is not None})  # type: ignore[arg-type]
    assert context.parent is not None
    default_options = [name for name, value in limit_options.items() if value == getattr(DialogLimits(), name)]
    again = (
        *typed(context.parent),
        "refine",
        *typed(context, without=("op", "only_failing", "restart", *default_options)),
    )
    choice = RefineChoice(model, op, only_failing, llm, Options(llm_model, base_url), limits, again, restart, few_cases)
    rows = refine(Workspace(context.obj), library, platform, choice)
    typer.echo(json.dumps({"operators": rows}) if as_json else refinement_lines(rows))
    causes = [r["detail"] for r in rows if r["exit"] in ("ABORTED", "NOT_BEGUN")]
    if causes:
        sys.stderr.write(f"enable: {' '.join(causes[0].split())}\n")
        raise typer.Exit(2)
    raise typer.Exit(0 if all(r["exit"] in ("PASSED", "WAITING") for r in rows) else 1)
