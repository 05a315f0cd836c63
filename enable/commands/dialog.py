"""Define `enable dialog`: list and show dialogs, answer them by hand, and save recordings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from enable.naming import full
from enable.options import AsJson

app = typer.Typer(help="Look after the dialogs of refinement.", no_args_is_help=True, rich_markup_mode=None)

Overload = Annotated[str, typer.Argument(metavar="OP", parser=full, help="An operator, e.g. aten::gelu or gelu.")]
Campaign = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of this campaign; '' is of none. By default wherever there is one.")
]


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List every run: operator, stage, calls, tokens, and whose turn it is.

    yours: it waits for an answer (see: enable dialog answer). stopped: the same command goes on with it. running: a
    process works on it. -: it has ended.
    """
    from enable.refine.dialogs import list_lines, runs
    from enable.workspace import Workspace

    rows = [run.as_json() for run in runs(Workspace(context.obj))]
    typer.echo(json.dumps({"runs": rows}) if as_json else list_lines(rows))


@app.command()
def show(
    context: typer.Context,
    overload: Overload,
    call: Annotated[int | None, typer.Option(min=1, help="Only this call, with all that the model was asked.")] = None,
    run: Annotated[int | None, typer.Option(min=1, help="Of an earlier run.", show_default="the latest")] = None,
    campaign: Campaign = None,
    as_json: AsJson = False,
) -> None:
    """Show what was said about an operator, and what came of each answer."""
    from enable.refine.dialogs import one, shown_json, shown_text
    from enable.workspace import Workspace

    dialog_run = one(Workspace(context.obj), overload, campaign, run)
    typer.echo(json.dumps(shown_json(dialog_run, call)) if as_json else shown_text(dialog_run, call))


@app.command()
def answer(
    context: typer.Context,
    overload: Overload,
    file: Annotated[str, typer.Argument(help="A file with the answer; - is stdin.")],
    campaign: Campaign = None,
) -> None:
    """Answer a run of the manual provider that waits; then the same enable command goes on with it."""
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


@app.command()
def record(
    context: typer.Context,
    overload: Overload,
    out: Annotated[Path, typer.Option(help="File to write, e.g. gelu.jsonl.")],
    campaign: Campaign = None,
) -> None:
    """Save the dialogs of an operator's newest answered run as a recording for the replay provider."""
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
