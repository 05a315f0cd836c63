"""Define `enable dialog`: list and show dialogs, answer them by hand, and save recordings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import Command, examples
from enable.naming import full
from enable.options import AsJson

app = typer.Typer(
    help="List, show, answer and record dialogs with a language model.", no_args_is_help=True, rich_markup_mode=None
)

Overload = Annotated[
    str,
    typer.Argument(
        metavar="OP",
        autocompletion=completion.operators,
        parser=full,
        help="An operator, for example aten::gelu or gelu.",
    ),
]
Campaign = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=completion.campaigns,
        help="Consider only this campaign; '' selects those of `enable refine`.",
        show_default="all",
    ),
]


@app.command("list", cls=Command, epilog=examples({"List all runs": "enable dialog list"}))
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List runs, with operator, stage, calls, tokens and turn.

    The turn is `yours` if the run waits for an answer (see: enable dialog answer), `stopped` if the command that began
    the run can continue it, `running` if a process works on it, and `-` if the run has ended.
    """
    from enable.refine.dialogs import list_lines, runs
    from enable.workspace import Workspace

    rows = [run.as_json() for run in runs(Workspace(context.obj))]
    typer.echo(json.dumps({"runs": rows}) if as_json else list_lines(rows))


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Show the latest dialog about gelu": "enable dialog show gelu",
            "Show the complete prompt of its second call": "enable dialog show gelu --call 2",
        }
    ),
)
def show(
    context: typer.Context,
    overload: Overload,
    call: Annotated[int | None, typer.Option(min=1, help="Show only this call, with the complete prompt.")] = None,
    run: Annotated[int | None, typer.Option(min=1, help="Run number.", show_default="latest")] = None,
    campaign: Campaign = None,
    as_json: AsJson = False,
) -> None:
    """Show the prompts and answers about an operator, with results."""
    from enable.refine.dialogs import one, shown_json, shown_text
    from enable.workspace import Workspace

    dialog_run = one(Workspace(context.obj), overload, campaign, run)
    typer.echo(json.dumps(shown_json(dialog_run, call)) if as_json else shown_text(dialog_run, call))


@app.command(cls=Command, epilog=examples({"Answer with a kernel file": "enable dialog answer gelu gelu.py"}))
def answer(
    context: typer.Context,
    overload: Overload,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file with the answer; - reads standard input.")],
    campaign: Campaign = None,
) -> None:
    """Answer a run of the manual provider.

    Then repeat the command that began the run; it continues with the answer.
    """
    from enable.refine.dialogs import answer as put
    from enable.workspace import Workspace
    from traces import UserError

    try:
        text = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8")
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; name a file with the answer, or - for stdin") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not a text in UTF-8 (byte {error.start}); write it anew") from error
    path, again = put(Workspace(context.obj), overload, campaign, text)
    typer.echo(f"{path} written\n  next  {again}")


@app.command(cls=Command, epilog=examples({"Save a dialog about gelu": "enable dialog record gelu --out gelu.jsonl"}))
def record(
    context: typer.Context,
    overload: Overload,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write, for example gelu.jsonl.")],
    campaign: Campaign = None,
) -> None:
    """Save an operator's dialogs for the replay provider.

    The newest run that has answers is saved.
    """
    from enable.refine.dialogs import runs
    from enable.workspace import Workspace
    from generate.journal import NAME
    from generate.recording import has_answers, to_recording
    from traces import UserError

    if out.exists() or not out.parent.is_dir():
        problem = "exists" if out.exists() else f"cannot be written: {out.parent} is no directory"
        raise UserError(f"{out} {problem}; name another file with --out FILE")
    workspace = Workspace(context.obj)
    paths = [run.directory / NAME for run in runs(workspace, overload, campaign)]
    answered = [path for path in paths if has_answers(path)]
    if not answered:
        raise UserError(
            f"no answer about {overload} in {workspace.dialogs}; see: {workspace.command('dialog', 'list')}"
        )
    typer.echo(f"{to_recording(answered[-1], out)} recorded from {answered[-1].parent}")
