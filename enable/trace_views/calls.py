"""Build the output for `enable trace list` and `enable trace show --op`: traces, and the calls to an operator."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from enable.naming import means, near
from enable.tables import size, table
from enable.terminal import LAYOUT, printable
from enable.workspace import Workspace
from traces import TraceError, UserError
from traces.program import program_name

if TYPE_CHECKING:
    from traces import CallRecord, Trace
    from traces.records import Signature

_STORED = 4  # maximum number of stored calls in a signature's line


def trace_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the rows that `enable trace list --json` prints, one per trace in the workspace."""
    return [_trace_row(workspace, name) for name in workspace.trace_names()]


def _trace_row(workspace: Workspace, name: str) -> dict[str, Any]:
    """Return the row for a trace; for an unreadable trace, mostly None and the problem."""
    from traces.format import MANIFEST
    from traces.store import Trace

    path = workspace.trace_path(name)
    row: dict[str, Any] = {"trace": name, "model": None, "device": None, "steps": None, "calls": None, "stored": None}
    try:
        trace = Trace.open(path, partial=True)
    except (UserError, TraceError) as error:
        return {**row, "bytes": None, "recorded": None, "torch": None, "complete": False, "problem": str(error)}
    manifest = trace.manifest
    info = manifest.get("info")
    row |= {key: info.get(key) for key in ("model", "device")} if isinstance(info, dict) else {}
    row |= {key: manifest.get(key) for key in ("steps", "calls", "stored")}
    return {
        **row,
        "bytes": sum(p.stat().st_size for p in path.iterdir()),
        "recorded": time.strftime("%Y-%m-%d %H:%M", time.localtime((path / MANIFEST).stat().st_mtime)),
        "torch": manifest.get("versions", {}).get("torch"),
        "complete": trace.complete,
        "problem": None if trace.complete else "its recording did not finish",
    }


def list_lines(rows: list[dict[str, Any]], workspace: Workspace) -> str:
    """Return the traces as a table, with a line for each problem."""
    if not rows:
        return f"no traces in {workspace.traces}; what can be recorded: {program_name()} models"
    shown = [
        {**{k: v for k, v in row.items() if k not in ("bytes", "complete", "problem")}, "size": _size(row["bytes"])}
        for row in rows
    ]
    return "\n".join(
        [
            table(shown, ("torch", "stored", "steps", "recorded", "device", "size")),
            *(printable(f"{row['trace']}: {row['problem']}") for row in rows if row["problem"]),
        ]
    )


def _size(nbytes: int | None) -> str:
    return "-" if nbytes is None else size(nbytes)


def calls_of(trace: Trace, op: str, see: str) -> list[dict[str, Any]]:
    """Return the rows that `enable trace show --op --json` prints, one per signature, sorted by overload and calls.

    Args:
        trace: Trace.
        op: Overload, or operator for all its overloads.
        see: Command that lists all operators.

    Raises:
        UserError: If the trace has no call to `op`.
    """
    signatures = [s for s in trace.signatures.values() if means(op, s.overload)]
    if not signatures:
        like = near(op, {s.overload for s in trace.signatures.values()})
        raise UserError(f"{trace.path} holds no call of {op}{like and f' (near it: {like})'}; see: {see}")
    stored: dict[str, list[CallRecord]] = {s.key: [] for s in signatures}
    for record in trace.calls():
        if record.signature in stored:
            stored[record.signature].append(record)
    rows = [_signature_row(s, stored[s.key]) for s in signatures]
    return sorted(rows, key=lambda row: (row["overload"], -row["calls"]))


def _signature_row(signature: Signature, records: list[CallRecord]) -> dict[str, Any]:
    """Return the row for a signature.

    `stored` lists the stored calls; the trace records no module for the others. `arguments` belongs to the
    first stored call and is None if there is none. `text` is the text form that distinguishes signatures.
    """
    return {
        "overload": signature.overload,
        "signature": signature.key,
        "kind": signature.kind,
        "device": signature.device,
        "calls": signature.calls,
        "phases": signature.phases,
        "stored": [
            {"id": r.id, "module": r.module, "phase": r.phase, "step": r.step, "level": r.level} for r in records
        ],
        "arguments": _arguments(records[0]) if records else None,
        "text": signature.arguments,
    }


def _arguments(record: CallRecord) -> dict[str, Any]:
    """Return arguments by name: dtype, shape and stride for tensors, also in lists; other values as stored."""
    tensors = record.header["tensors"]

    def describe(value: Any) -> Any:
        if isinstance(value, list):
            return [describe(v) for v in value]
        if not isinstance(value, dict):
            return value
        (tag, content), *_ = value.items()
        if tag == "tensor":
            return {name: tensors[content][name] for name in ("dtype", "shape", "stride")}
        if tag == "float":
            return float.fromhex(content)
        return describe(content) if tag == "tuple" else content if isinstance(content, str) else tag

    return {name: describe(value) for name, value in record.header["tree"].items()}


def calls_lines(rows: list[dict[str, Any]]) -> str:
    """Return three lines per signature: call counts, stored calls with ids and modules, and arguments."""
    lines = []
    for overload in dict.fromkeys(row["overload"] for row in rows):
        overload_rows = [row for row in rows if row["overload"] == overload]
        calls, stored = sum(row["calls"] for row in overload_rows), sum(len(row["stored"]) for row in overload_rows)
        lines.append(
            f"{overload}: {_count(calls, 'call')} of {_count(len(overload_rows), 'signature')}, {stored} stored"
        )
        lines += [line for row in overload_rows for line in _row_lines(row)]
    return "\n".join(printable(line, LAYOUT) for line in lines)


def _row_lines(row: dict[str, Any]) -> list[str]:
    """Return the three lines for a signature."""
    phases = ", ".join(f"{n} {phase}" for phase, n in row["phases"].items())
    stored = [f"call {s['id']} in {s['module'] or 'the model'} ({s['level']})" for s in row["stored"]]
    more = f", and {len(stored) - _STORED} more: --json" if len(stored) > _STORED else ""
    arguments = row["arguments"]
    text = row["text"] if arguments is None else ", ".join(f"{k}: {_shown(v)}" for k, v in arguments.items())
    return [
        f"\n  {_count(row['calls'], 'call')}{_on(row['device'])}: {phases}",
        f"    stored  {', '.join(stored[:_STORED]) or 'none'}{more}",
        f"    {text}",
    ]


def _on(device: str) -> str:
    """Return the device as a suffix; '' for the CPU or an unknown device."""
    return "" if device in ("", "cpu") else f" on {device}"


def _count(n: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _shown(value: Any) -> str:
    """Return an argument as text."""
    if isinstance(value, dict):
        return f"{value['dtype']} {value['shape']} stride {value['stride']}"
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return f"[{'; '.join(map(_shown, value))}]"
    return str(value)
