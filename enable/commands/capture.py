"""`enable capture`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from enable.options import AsJson


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Name of a model; see: enable models.")],
    batch: Annotated[int | None, typer.Option(help="Batch size; the model's own default if not given.")] = None,
    steps: Annotated[int, typer.Option(help="Training steps to record, from the first on.")] = 1,
    optimizer: Annotated[str | None, typer.Option(help="Optimizer, e.g. adamw, adamw-fused, sgd.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be repeated.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where the model runs while it is recorded.")] = "cpu",
    data: Annotated[Path | None, typer.Option(help="Data file of the model, e.g. Criteo Kaggle TSV for dlrm.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the trace; traces/MODEL.trace of the workspace if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing trace.")] = False,
    as_json: AsJson = False,
) -> None:
    """Record a model's training steps as a trace.

    Every ATen call of forward, loss, backward, clip and optimizer is counted; the first of each signature is stored
    with the bytes of its inputs.
    """
    from capture.session import capture_model
    from capture.targets import load_target
    from enable.tables import capture_lines, capture_summary
    from enable.workspace import Workspace

    given = dict(_setting(text) for text in settings or [])
    if data is not None:
        given["data"] = str(data)
    target = load_target(model, given, batch=batch, optimizer=optimizer, device=device)
    workspace = Workspace(context.obj)
    if out is None:
        workspace.create()
    path = out or workspace.trace_path(model)
    found = capture_summary(target.name, capture_model(target, path, steps=steps, force=force))
    typer.echo(json.dumps(found) if as_json else capture_lines(found, str(out or target.name)))
    if found["errors"]:
        sys.stderr.write(f"enable: the recorder failed on {len(found['errors'])} operators, see errors in {path}\n")
        raise typer.Exit(1)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    return name, value
