"""`enable dialog`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Look after the dialogs of refinement.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Make this a group although it has one command so far."""


@app.command()
def record(
    context: typer.Context,
    overload: Annotated[str, typer.Argument(help="Whose newest answered run, e.g. aten::gelu.")],
    out: Annotated[Path, typer.Option(help="File to write, e.g. gelu.jsonl.")],
) -> None:
    """Save a run's dialogs as a recording for the replay provider."""
    from enable.workspace import Workspace
    from generate.journal import NAME, slug
    from generate.recording import has_answers, to_recording
    from traces import UserError

    if out.exists() or not out.parent.is_dir():
        problem = "exists" if out.exists() else f"cannot be written: {out.parent} is no directory"
        raise UserError(f"{out} {problem}; name another file with --out FILE")
    home = Workspace(context.obj).dialogs / slug(overload)
    answered = [path for path in sorted(home.glob(f"run-*/{NAME}")) if has_answers(path)]
    if not answered:
        raise UserError(f"no answer about {overload} in {home}; hold a dialog: enable refine --op {overload}")
    typer.echo(f"{to_recording(answered[-1], out)} recorded from {answered[-1].parent}")
