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
    overload: Annotated[str, typer.Argument(help="Whose newest run, e.g. aten::gelu.")],
    out: Annotated[Path, typer.Option(help="File to write, e.g. gelu.jsonl.")],
) -> None:
    """Save a run's dialogs as a recording for the replay provider."""
    from enable.workspace import Workspace
    from generate.journal import NAME, slug
    from generate.recording import to_recording
    from traces import UserError

    home = Workspace(context.obj).dialogs / slug(overload)
    runs = sorted(home.glob(f"run-*/{NAME}"))
    if not runs:
        raise UserError(f"no dialog about {overload} in {home}; hold one: enable refine --op {overload} --llm openai")
    typer.echo(f"{to_recording(runs[-1], out)} recorded from {runs[-1].parent}")
