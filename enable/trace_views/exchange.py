"""Implement `enable trace export`, `import` and `diff`: convert traces to other tools' formats, and compare them."""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from enable import completion
from enable.naming import means
from enable.options import AsJson
from traces import UserError
from traces.errors import choose_from

if TYPE_CHECKING:
    from traces import CallRecord, Trace

EXPORTS = {  # file suffix by format
    "backendbench-txt": ".txt",
    "backendbench-parquet": ".parquet",
    "chrome": ".json",
    "parquet": ".parquet",
    "repro": "",
}
IMPORTS = ("backendbench-txt", "backendbench-parquet", "chakra")

_IDS = 12  # maximum number of call ids in a line

TraceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRACE", autocompletion=completion.traces, help="A captured model's name, or the path to a trace."
    ),
]


def export(
    context: typer.Context,
    model: TraceArgument,
    form: Annotated[str, typer.Option("--format", help=f"Format: {', '.join(EXPORTS)}.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="File or directory to write.",
            show_default="named after the model, in the working directory",
        ),
    ] = None,
    call: Annotated[int | None, typer.Option("--call", help="Export only the stored call with this id.")] = None,
    op: Annotated[
        str | None,
        typer.Option("--op", help="Export only this operator: aten::add.Tensor, or add for all its overloads."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export a trace to another tool's format.

    backendbench-txt and backendbench-parquet hold shapes, strides, dtypes, scalars and counts; calls that do not fit
    are counted and printed. chrome is a timeline of the stored calls with their phases and modules, for ui.perfetto.dev
    and chrome://tracing. parquet is a table with a row for each stored call, like Trace.frame() in Python. repro is one
    stored call as a script and a safetensors file, which need only PyTorch: the call of --call, or the first one of
    --op. To list an operator's calls with ids and shapes: enable trace show TRACE --op NAME.
    """
    from enable.workspace import Workspace

    if form not in EXPORTS:
        raise UserError(f"unknown format {form!r}{choose_from(form, EXPORTS)}")
    if form == "repro" and call is None and op is None:
        raise UserError("--format repro writes one call; name it with --call ID, or the first of an operator with --op")
    workspace = Workspace(context.obj)
    records = _chosen(trace := workspace.open_trace(model), call, op)
    if not records:
        words = ["trace", "show", model, *(["--op", op] if op is not None and _chosen(trace, None, op) else [])]
        wanted = [f"call {call}"] * (call is not None) + [f"{op}"] * (op is not None)
        raise UserError(f"{model} holds no {' of '.join(wanted) or 'stored call'}; see: {workspace.command(*words)}")
    path = out or Path(_default_name(model, form, records))
    if path.exists() and (form == "repro" or path.is_dir() or not force):
        raise UserError(f"{path} exists; pass --out PATH to write elsewhere{'' if form == 'repro' else ' or --force'}")
    if form == "repro":
        _export_repro(trace, records, path)
    elif form in ("chrome", "parquet"):
        _export_calls(trace, records, form, path)
    else:
        _export_rows(trace, records, form, path)


def _chosen(trace: Trace, call: int | None, op: str | None) -> list[CallRecord]:
    """Return the stored calls that the options select."""
    return [r for r in trace.calls() if (call is None or r.id == call) and (op is None or means(op, r.overload))]


def _default_name(model: str, form: str, records: list[CallRecord]) -> str:
    """Return the default name for the output file, or for a reproducer's directory."""
    name = Path(model).name.removesuffix(".trace")
    return f"{name}-{records[0].id}" if form == "repro" else f"{name}{EXPORTS[form]}"


def _export_repro(trace: Trace, records: list[CallRecord], path: Path) -> None:
    """Write the first call as a reproducer, and print which call that is."""
    from traces.exchange.repro import write_repro

    record, *rest = records
    write_repro(trace, record, path)
    lines = [f"call {record.id} of {record.overload}, values {record.level}, in {path}"]
    if rest:
        ids = ", ".join(str(r.id) for r in rest[:_IDS]) + (", ..." if len(rest) > _IDS else "")
        lines.append(f"  the first of {len(records)} stored calls; another with --call ID: {ids}")
    typer.echo("\n".join([*lines, f"  next  {shlex.join([sys.executable, str(path / 'repro.py')])}"]))


def _export_calls(trace: Trace, records: list[CallRecord], form: str, path: Path) -> None:
    """Write each stored call, as a slice in a timeline or as a table row."""
    from enable.trace_views.timeline import timeline
    from traces.exchange.backendbench import needs_pyarrow
    from traces.format import write_durably
    from traces.frames import frame_of

    if form == "chrome":
        content = json.dumps(timeline(trace, records)).encode()
    else:
        buffer = io.BytesIO()
        needs_pyarrow("pyarrow")
        frame_of(trace, records).to_parquet(buffer, index=False)
        content = buffer.getvalue()
    _written(lambda: write_durably(path, [content]), path)
    lines = [f"{len(records)} stored calls of {len({r.overload for r in records})} operators in {path}"]
    if form == "chrome":
        lines.append("  next  open it in ui.perfetto.dev or chrome://tracing")
    typer.echo("\n".join(lines))


def _export_rows(trace: Trace, records: list[CallRecord], form: str, path: Path) -> None:
    """Write calls in a BackendBench format, and print counts for calls and details that the format cannot express."""
    from traces.exchange import backendbench

    exported = backendbench.export(trace, records)
    write = backendbench.write_text if form == "backendbench-txt" else backendbench.write_parquet
    _written(lambda: write(exported.rows, path), path)
    calls = sum(row.count for row in exported.rows)
    lines = [
        f"{calls} calls in {len(exported.rows)} lines of {len({r.operator for r in exported.rows})} operators in {path}"
    ]
    typer.echo("\n".join(lines + _counted("left out", exported.left_out) + _counted("lost", exported.lost)))


def _written(write: Callable[[], object], path: Path) -> None:
    """Write a file; an OSError becomes a UserError."""
    try:
        write()
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); name another with --out PATH") from error


def _counted(title: str, counts: Mapping[str, int]) -> list[str]:
    """Return a line for each nonzero count, the largest first."""
    return [f"  {title:<9} {n} calls: {reason}" for reason, n in Counter(dict(counts)).most_common() if n]


def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The other tool's file.")],
    form: Annotated[str, typer.Option("--format", help=f"Format: {', '.join(IMPORTS)}.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIRECTORY",
            help="Directory to write the trace to.",
            show_default="traces/NAME.trace in the workspace",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing trace.")] = False,
) -> None:
    """Import another tool's calls as a trace.

    Such files hold no tensor contents; a replay draws valid values from a seed. Nothing in the file is executed. Calls
    that cannot be imported are counted by reason.
    """
    from enable.workspace import Workspace
    from traces.exchange.imports import import_trace

    workspace = Workspace(context.obj)
    path = out or workspace.trace_path(file.stem)
    imported = import_trace(file, form, path, force)
    name = str(out or file.stem)
    lines = [f"{imported.calls} calls, {imported.stored} of them stored, in {path}"]
    lines += _counted("left out", imported.left_out) + _counted("lost", imported.lost)
    typer.echo("\n".join([*lines, f"  next      {workspace.command('trace', 'show', name)}"]))


def diff(
    context: typer.Context,
    before: Annotated[str, typer.Argument(metavar="A", help="Name or path of the first trace.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Name or path of the trace to compare with it.")],
    as_json: AsJson = False,
) -> None:
    """Compare the signatures and call counts of two traces.

    Print the signatures that are new, missing, or called more or less often, for example after an upgrade of PyTorch.
    Exit status 1 if the traces differ.
    """
    from enable.trace_views.tables import diff_summary, diff_tables
    from enable.workspace import Workspace
    from traces.diff import diff as compare

    workspace = Workspace(context.obj)
    changes = compare(workspace.open_trace(before), workspace.open_trace(after))
    summary: dict[str, Any] = diff_summary((before, after), changes)
    typer.echo(json.dumps(summary) if as_json else diff_tables(summary))
    raise typer.Exit(0 if changes.equal else 1)
