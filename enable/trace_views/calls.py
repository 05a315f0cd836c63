"""What `enable trace list` and `enable trace show --op` print: the traces of a workspace, the calls of an operator."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from enable.naming import means, near
from enable.tables import size, table
from enable.workspace import Workspace
from traces import TraceError, UserError

if TYPE_CHECKING:
    from traces import CallRecord, Trace
    from traces.records import Signature

_STORED = 4  # calls of a signature that are named


def trace_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """What `enable trace list --json` prints: a row for each trace of the workspace."""
    return [_trace_row(workspace, name) for name in workspace.trace_names()]


def _trace_row(workspace: Workspace, name: str) -> dict[str, Any]:
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
    """The same as a table, and what is wrong with any."""
    if not rows:
        return f"no traces in {workspace.traces}; what can be recorded: enable models"
    shown = [
        {**{k: v for k, v in row.items() if k not in ("bytes", "complete", "problem")}, "size": _size(row["bytes"])}
        for row in rows
    ]
    return "\n".join([table(shown), *(f"{row['trace']}: {row['problem']}" for row in rows if row["problem"])])


def _size(nbytes: int | None) -> str:
    return "-" if nbytes is None else size(nbytes)


def calls_of(trace: Trace, op: str, see: str) -> list[dict[str, Any]]:
    """What `enable trace show --op --json` prints: a row a signature of the operator, the most called first.

    op: an overload, or an operator for all its overloads. see: what lists all operators. Raises UserError if the trace
    has no call of it.
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
    """stored: the calls that are kept; of the others the trace knows no module. arguments: of the first of these, None
    if none is. text: the arguments with what tells signatures apart."""
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
    """By name: shape, stride and dtype of tensors, alone or in lists; other values as the trace keeps them."""
    tensors = record.header["tensors"]

    def told(value: Any) -> Any:
        if isinstance(value, list):
            return [told(v) for v in value]
        if not isinstance(value, dict):
            return value
        (tag, content), *_ = value.items()
        if tag == "tensor":
            return {name: tensors[content][name] for name in ("dtype", "shape", "stride")}
        if tag == "float":
            return float.fromhex(content)
        return told(content) if tag == "tuple" else content if isinstance(content, str) else tag

    return {name: told(value) for name, value in record.header["tree"].items()}


def calls_lines(rows: list[dict[str, Any]]) -> str:
    """Three lines a signature: how often; what is stored of it, with ids and modules; its arguments."""
    lines = []
    for overload in dict.fromkeys(row["overload"] for row in rows):
        mine = [row for row in rows if row["overload"] == overload]
        calls, stored = sum(row["calls"] for row in mine), sum(len(row["stored"]) for row in mine)
        lines.append(f"{overload}: {_count(calls, 'call')} of {_count(len(mine), 'signature')}, {stored} stored")
        lines += [line for row in mine for line in _row_lines(row)]
    return "\n".join(lines)


def _row_lines(row: dict[str, Any]) -> list[str]:
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
    return "" if device in ("", "cpu") else f" on {device}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['dtype']} {value['shape']} stride {value['stride']}"
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return f"[{'; '.join(map(_shown, value))}]"
    return str(value)
