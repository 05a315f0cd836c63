"""`enable capture`."""

from __future__ import annotations

import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from capture.limits import VALUES, Limits, parse_size
from enable.naming import full
from enable.options import AsJson
from enable.workspace import Workspace
from traces import UserError

_MAX_BYTES, _MAX_BLOB = f"{Limits.max_bytes >> 30}GiB", f"{Limits.max_blob >> 20}MiB"


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="A model (see: enable models), transformers:CLASS, timm:MODEL, or your own MODULE:FACTORY."
        ),
    ],
    batch: Annotated[int | None, typer.Option(help="Batch size; the target's own default if not given.")] = None,
    steps: Annotated[int, typer.Option(help="Training steps to record.")] = 1,
    skip_steps: Annotated[int, typer.Option(help="Training steps to run first, unrecorded.")] = Limits.skip_steps,
    optimizer: Annotated[str | None, typer.Option(help="Optimizer, e.g. adamw, adamw-fused, sgd.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the target; may be repeated.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Where the model runs while it is recorded: cpu, cuda, xpu or sim.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Data file of the model, e.g. Criteo Kaggle TSV for dlrm.")] = None,
    max_bytes: Annotated[str, typer.Option(metavar="SIZE", help="Of all tensor contents together.")] = _MAX_BYTES,
    max_blob: Annotated[str, typer.Option(metavar="SIZE", help="Of one tensor's contents.")] = _MAX_BLOB,
    per_signature: Annotated[
        int, typer.Option(metavar="N", help="Calls of each signature to store.")
    ] = Limits.per_signature,
    per_op_max: Annotated[
        int | None, typer.Option(metavar="N", help="Calls of each operator to store at most.")
    ] = Limits.per_op_max,
    phases: Annotated[
        list[str] | None,
        typer.Option("--phase", metavar="NAME", help="Record only this phase, e.g. backward; may be repeated."),
    ] = None,
    ops: Annotated[
        list[str] | None,
        typer.Option("--ops", metavar="PATTERN", help="Record only these, e.g. 'aten::*backward*'; may be repeated."),
    ] = None,
    values: Annotated[str, typer.Option(help=f"What to keep of tensor contents: {', '.join(VALUES)}.")] = Limits.values,
    op: Annotated[
        list[str] | None, typer.Option("--op", metavar="NAME", help="Of opinfo, only this operator; may be repeated.")
    ] = None,
    dtypes: Annotated[
        list[str] | None, typer.Option("--dtype", metavar="DTYPE", help="Of opinfo, only this dtype; may be repeated.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Of opinfo, also operators of 900 samples or more.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the trace; made from the target if not given.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the trace; traces/NAME.trace of the workspace if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing trace.")] = False,
    as_json: AsJson = False,
) -> None:
    """Record a model's training steps as a trace.

    Every ATen call of forward, loss, backward, clip and optimizer is counted; the first of each signature is stored
    with the bytes of its inputs, as far as the limits allow.

    MODULE:FACTORY imports MODULE, which runs its code, with the working directory first on Python's path. FACTORY
    takes the settings as keywords and returns a callable step(), or (model, batch, loss, optimizer), where
    loss(model, batch) is a scalar. transformers: and timm: build a model with random weights and download nothing.

    opinfo records every sample of PyTorch's OpInfo instead, forward and backward, on device sim with the CPU executing;
    of the other options only --out, --name and --force apply. What was recorded with this torch is not recorded again.
    """
    workspace = Workspace(context.obj)
    if target == "opinfo":
        from enable.cover.opinfo_recording import capture_opinfo, opinfo_lines

        path = out or Path("opinfo" if name is None else _file_name(name))
        found = capture_opinfo(context.obj, path, out is None, op or [], dtypes or [], everything, force)
        typer.echo(json.dumps(found) if as_json else opinfo_lines(found, workspace.command("coverage", str(path))))
        return
    if op or dtypes or everything:
        raise UserError("--op, --dtype and --all are for opinfo; to record some operators of a model: --ops PATTERN")
    limits: dict[str, Any] = {
        "steps": steps,
        "skip_steps": skip_steps,
        "max_bytes": parse_size(max_bytes),
        "max_blob": parse_size(max_blob),
        "per_signature": per_signature,
        "per_op_max": per_op_max,
        "phases": tuple(phases or ()),
        "ops": tuple(map(_pattern, ops or ())),
        "values": values,
    }
    Limits(**limits)  # what makes no sense is refused before the user's code is imported
    given = _given(settings or [], data)

    from capture.session import capture_model, check_path
    from capture.targets import load_target, trace_name
    from enable.tables import capture_lines, capture_summary

    name = trace_name(target) if name is None else _file_name(name)
    path = out or workspace.trace_path(name)
    if ":" in target:  # the target is code that takes its time, and may do anything
        check_path(path, force)
    with redirect_stdout(sys.stderr):  # what that code prints is no result
        loaded = load_target(target, given, batch=batch, optimizer=optimizer, device=device)
        if out is None:
            workspace.create()
        summary = capture_model(loaded, path, force=force, **limits)
    found = capture_summary(target, summary)
    shown = name if out is None and summary.path == path else str(summary.path)  # each rank writes to a path of its own
    typer.echo(json.dumps(found) if as_json else capture_lines(found, workspace.command("coverage", shown)))
    if found["errors"]:
        count = len(found["errors"])
        sys.stderr.write(f"enable: the recorder failed on {count} operators, see errors in {summary.path}\n")
        raise typer.Exit(1)


def _given(settings: list[str], data: Path | None) -> dict[str, str]:
    """The settings by name, the data file among them."""
    return dict(map(_setting, settings)) | ({} if data is None else {"data": str(data)})


def _pattern(text: str) -> str:
    """A pattern of overloads' full names."""
    return text if "::" in text or text.startswith("*") else full(text)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    return name, value


def _file_name(name: str) -> str:
    if not re.fullmatch(r"\w[\w.+-]*", name):
        raise typer.BadParameter(f"{name!r} is not letters, digits and . _ + -", param_hint="--name")
    return name
