"""Define `enable capture`: record a model's training steps, or OpInfo samples, as a trace."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from capture.limits import PHASES, VALUES, Limits, parse_size
from enable import completion
from enable.help import examples
from enable.naming import TRACE_NAME, full
from enable.options import AsJson
from enable.workspace import Workspace
from traces import UserError
from traces.program import program_label

_MAX_BYTES, _MAX_BLOB = f"{Limits.max_bytes >> 30}GiB", f"{Limits.max_blob >> 20}MiB"

EPILOG = examples(
    {
        "Record one training step of nanoGPT": "enable capture nanogpt",
        "Record a model of transformers, as a new accelerator would run it": (
            "enable capture transformers:GPT2LMHeadModel --device sim --set n_layer=2"
        ),
        "Record your own training step, built by make() in train.py": "enable capture train:make --steps 2",
    }
)

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        autocompletion=completion.models,
        help="A model (see: enable models), transformers:CLASS, timm:MODEL, opinfo, or your own MODULE:FACTORY.",
    ),
]
Batch = Annotated[int | None, typer.Option(help="Batch size.", show_default="set by the target")]
Steps = Annotated[int, typer.Option(help="Training steps to record.")]
SkipSteps = Annotated[int, typer.Option(help="Training steps to run before the recording.")]
Optimizer = Annotated[
    str | None, typer.Option(help="Optimizer, for example adamw, adamw-fused or sgd.", show_default="set by the target")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a target's setting; may be repeated."),
]
Device = Annotated[
    str | None,
    typer.Option(
        autocompletion=completion.devices,
        help="Device that runs the model: cpu, cuda, xpu, sim, or a chip with a platform file.",
        show_default="cpu, or set by FACTORY",
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Data file for the model, for example a Criteo Kaggle TSV file for dlrm."),
]
MaxBytes = Annotated[str, typer.Option(metavar="SIZE", help="Maximum size for all stored tensor contents.")]
MaxBlob = Annotated[str, typer.Option(metavar="SIZE", help="Maximum size for one tensor's stored contents.")]
PerSignature = Annotated[int, typer.Option(metavar="N", help="Calls to store for each signature.")]
PerOpMax = Annotated[
    int | None,
    typer.Option(metavar="N", help="Maximum calls to store for each operator.", show_default="unlimited"),
]
Phases = Annotated[
    list[str] | None,
    typer.Option(
        "--phase",
        metavar="NAME",
        autocompletion=completion.choices(*PHASES),
        help="Record only this phase, for example backward; may be repeated.",
    ),
]
Ops = Annotated[
    list[str] | None,
    typer.Option(
        "--ops", metavar="PATTERN", help="Record only these operators, for example 'aten::*backward*'; may be repeated."
    ),
]
Kept = Annotated[
    str,
    typer.Option(
        autocompletion=completion.choices(*VALUES),
        help=f"Detail in which tensor contents are stored: {', '.join(VALUES)}.",
    ),
]
SampledOps = Annotated[
    list[str] | None,
    typer.Option("--op", metavar="NAME", help="For opinfo: record only this operator; may be repeated."),
]
SampledDtypes = Annotated[
    list[str] | None,
    typer.Option("--dtype", metavar="DTYPE", help="For opinfo: record only this dtype; may be repeated."),
]
Everything = Annotated[bool, typer.Option("--all", help="For opinfo: also record operators with 900 samples or more.")]
Dataflow = Annotated[
    bool,
    typer.Option("--dataflow", help="Store every call of the first step and its data dependencies, for `enable fuse`."),
]
Name = Annotated[str | None, typer.Option(help="Trace name.", show_default="derived from the target")]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIRECTORY", help="Directory to write the trace to.", show_default="traces/NAME.trace in the workspace"
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing trace.")]


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    target: Target,
    batch: Batch = None,
    steps: Steps = 1,
    skip_steps: SkipSteps = Limits.skip_steps,
    optimizer: Optimizer = None,
    settings: Settings = None,
    device: Device = None,
    data: Data = None,
    max_bytes: MaxBytes = _MAX_BYTES,
    max_blob: MaxBlob = _MAX_BLOB,
    per_signature: PerSignature = Limits.per_signature,
    per_op_max: PerOpMax = Limits.per_op_max,
    phases: Phases = None,
    ops: Ops = None,
    values: Kept = Limits.values,
    op: SampledOps = None,
    dtypes: SampledDtypes = None,
    everything: Everything = False,
    dataflow: Dataflow = False,
    name: Name = None,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Record a model's training steps as a trace.

    Every ATen call in the forward pass, the loss, the backward pass, gradient clipping and the optimizer is counted.
    The first call of each signature is stored with the bytes of its inputs, within the size limits.

    MODULE:FACTORY imports MODULE, which runs its code, with the working directory first on Python's path. FACTORY
    takes the settings as keyword arguments and returns a callable step(), or a tuple (model, batch, loss, optimizer) in
    which loss(model, batch) is a scalar. transformers:CLASS and timm:MODEL build a model with random weights and
    download nothing.

    opinfo records the samples of PyTorch's operator tests, forward and backward, on the device sim, while the CPU
    computes the results. Only --op, --dtype, --all, --name, --out and --force apply to it. Samples that were recorded
    with the installed version of PyTorch are skipped.

    Exit status 1 if the recorder failed on an operator.
    """
    workspace = Workspace(context.obj)
    if target == "opinfo":
        summary, lines = _record_samples(workspace, op or [], dtypes or [], everything, name, out, force)
    elif op or dtypes or everything:
        raise UserError("--op, --dtype and --all are for opinfo; to record some operators of a model: --ops PATTERN")
    else:
        limits = _limits(
            steps=steps,
            skip_steps=skip_steps,
            max_bytes=max_bytes,
            max_blob=max_blob,
            per_signature=per_signature,
            per_op_max=per_op_max,
            phases=phases,
            ops=ops,
            values=values,
            dataflow=dataflow,
        )
        target_options = {
            "settings": _parse_settings(settings or [], data),
            "batch": batch,
            "optimizer": optimizer,
            "device": device,
        }
        summary, lines = _record_model(workspace, target, target_options, limits, name, out, force)
    typer.echo(json.dumps(summary) if as_json else lines)
    if summary.get("errors"):
        count = len(summary["errors"])
        sys.stderr.write(
            f"{program_label()}: the recorder failed on {count} operators, see errors in {summary['trace']}\n"
        )
        raise typer.Exit(1)


def _record_samples(
    workspace: Workspace,
    operators: list[str],
    dtypes: list[str],
    everything: bool,
    name: str | None,
    out: Path | None,
    force: bool,
) -> tuple[dict[str, Any], str]:
    """Record OpInfo samples, and return the summary as an object and as text."""
    from enable.cover.opinfo_recording import capture_opinfo, opinfo_lines

    path = out or Path("opinfo" if name is None else _file_name(name))
    summary = capture_opinfo(workspace.root, path, out is None, operators, dtypes, everything, force)
    return summary, opinfo_lines(summary, workspace.command("coverage", str(path)))


def _record_model(
    workspace: Workspace,
    target: str,
    how: dict[str, Any],
    limits: Limits,
    name: str | None,
    out: Path | None,
    force: bool,
) -> tuple[dict[str, Any], str]:
    """Record a model's training, and return the summary as an object and as text. For `how`, see `load_target`."""
    from capture.session import capture_model, check_path
    from capture.targets import DEVICES, load_target, trace_name
    from enable.tables import capture_lines, capture_summary

    name = trace_name(target) if name is None else _file_name(name)
    path = out or workspace.trace_path(name)
    if ":" in target:  # the target is user code that may be slow and have side effects, so check the path first
        check_path(path, force)
    with redirect_stdout(sys.stderr):  # stdout is reserved for the command's own output
        chip = ""
        if how["device"] and how["device"].partition(":")[0] not in DEVICES:
            # imported for a chip only, because a user's code may have a module `verify` of its own
            from enable.chips import resolve

            device, chip = resolve(how["device"])
            how = {**how, "device": device}
        loaded = load_target(target, **how)
        if out is None:
            workspace.create()
        summary = capture_model(loaded, path, force=force, native=workspace.native, **asdict(limits))
    result = capture_summary(target, summary)
    shown = name if out is None and summary.path == path else str(summary.path)  # each rank writes to a path of its own
    on_chip = ("--platform", chip) if chip else ()
    return result, capture_lines(result, workspace.command("coverage", shown, *on_chip))


def _limits(
    *, max_bytes: str, max_blob: str, phases: list[str] | None, ops: list[str] | None, **options: Any
) -> Limits:
    """Parse the limits; invalid values are rejected before the user's code is imported."""
    return Limits(
        max_bytes=parse_size(max_bytes),
        max_blob=parse_size(max_blob),
        phases=tuple(phases or ()),
        ops=tuple(map(_pattern, ops or ())),
        **options,
    )


def _parse_settings(settings: list[str], data: Path | None) -> dict[str, str]:
    """Return the settings by name, including the data file."""
    return dict(map(_setting, settings)) | ({} if data is None else {"data": str(data)})


def _pattern(text: str) -> str:
    """Return a pattern for full overload names."""
    return text if "::" in text or text.startswith("*") else full(text)


def _setting(text: str) -> tuple[str, str]:
    """Split NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    return name, value


def _file_name(name: str) -> str:
    """Return the name, or raise BadParameter if it is not a valid trace name."""
    if not TRACE_NAME.fullmatch(name):
        raise typer.BadParameter(f"{name!r} is not letters, digits and . _ + -", param_hint="--name")
    return name
