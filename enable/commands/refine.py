"""Define `enable refine`: let a language model write or repair kernels."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.naming import full
from enable.options import (
    BASE_URL_HELP,
    DIALOG_CALLS_HELP,
    DIALOGS_HELP,
    LLM_HELP,
    LLM_MODEL_HELP,
    PLATFORM,
    TEMPERATURE_HELP,
    AsJson,
    FewCases,
    Library,
    Platform,
    Recordings,
    typed,
)
from traces import UserError
from traces.program import program_label

EPILOG = examples(
    {
        "Write or repair all failing kernels with an OpenAI-compatible model": (
            "enable refine nanogpt --only-failing --llm openai --model gpt-5"
        ),
        "Write the answers for one operator yourself": "enable refine nanogpt --op aten::gelu --llm manual",
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="TRACE",
            autocompletion=completion.traces,
            help="A captured model's name, or the path to a trace.",
            show_default="all traces in the workspace",
        ),
    ] = None,
    only_failing: Annotated[
        bool, typer.Option("--only-failing", help="Refine every operator whose kernel is missing or fails.")
    ] = False,
    op: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.operators,
            parser=full,
            help="Refine this overload, for example aten::gelu or gelu.",
        ),
    ] = None,
    llm: Annotated[str, typer.Option(help=LLM_HELP)] = "replay",
    llm_model: Annotated[str | None, typer.Option("--model", help=LLM_MODEL_HELP)] = None,
    base_url: Annotated[str | None, typer.Option(envvar="OPENAI_BASE_URL", help=BASE_URL_HELP)] = None,
    recordings: Recordings = None,
    # The defaults are those of generate.machine.DialogLimits. It is not imported here, because every command imports
    # this module, and `enable capture` runs in one process with user code, which may have its own module `generate`.
    dialogs: Annotated[int | None, typer.Option(min=1, show_default="3", help=DIALOGS_HELP)] = None,
    calls: Annotated[int | None, typer.Option(min=1, show_default="15", help=DIALOG_CALLS_HELP)] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, show_default="1.0", help=TEMPERATURE_HELP)] = None,
    few_cases: FewCases = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start a new run and do not continue an earlier one.")
    ] = False,
    platform: Platform = PLATFORM,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Have a language model write or repair failing kernels.

    Each operator goes through the loop LLM -> lint -> compile -> test -> feedback -> LLM until every recorded case
    passes. An accepted kernel is stored in kernels/ in the workspace. To continue a run that stopped, repeat the
    command.

    Exit status 1 if an operator did not pass, and 0 if all passed or wait for manual answers.
    """
    from enable.refine.refining import RefineChoice, refine
    from enable.tables import refinement_lines
    from enable.workspace import Workspace
    from generate.llm import Options
    from generate.machine import DialogLimits

    workspace = Workspace(context.obj)
    if not only_failing and not op:
        if model is not None:
            workspace.open_trace(model)  # a misspelt trace is the first mistake to mend
        example = workspace.command("refine", *([model] if model is not None else []), "--only-failing")
        raise UserError(f"{model or 'all traces'}: no operator to refine is named; add --op NAME, or try: {example}")
    limit_options = {"dialogs": dialogs, "calls": calls, "temperature": temperature}
    limits = DialogLimits(**{name: value for name, value in limit_options.items() if value is not None})  # type: ignore[arg-type]
    assert context.parent is not None
    default_options = [name for name, value in limit_options.items() if value == getattr(DialogLimits(), name)]
    again = (
        *typed(context.parent),
        "refine",
        *typed(context, without=("op", "only_failing", "restart", *default_options)),
    )
    options = Options(llm_model, base_url, recordings)
    choice = RefineChoice(model, op, only_failing, llm, options, limits, again, restart, few_cases)
    rows = refine(workspace, library, platform, choice)
    typer.echo(json.dumps({"operators": rows}) if as_json else refinement_lines(rows))
    causes = [r["detail"] for r in rows if r["exit"] in ("ABORTED", "NOT_BEGUN")]
    if causes:
        sys.stderr.write(f"{program_label()}: {' '.join(causes[0].split())}\n")
        raise typer.Exit(2)
    raise typer.Exit(0 if all(r["exit"] in ("PASSED", "WAITING") for r in rows) else 1)
