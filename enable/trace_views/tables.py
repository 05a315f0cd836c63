"""Build the output for `enable trace show` and `enable trace diff`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from enable.tables import NOTHING_TO_COVER, PHASES, named_counts, size, table
from enable.terminal import printable, summary_line

if TYPE_CHECKING:
    from traces import CallRecord, Trace
    from traces.diff import Diff

VIEWS = ("op", "phase", "module", "bytes")
LEVELS = ("full", "rows", "seeded", "stats", "meta")
_BIN = 4  # ratio of a histogram bin's upper bound to its lower bound
_BAR = 24  # length of the longest bar, in characters
_ROWS = 40  # maximum number of rows in a text table


def trace_summary(trace: Trace) -> dict[str, Any]:
    """Return the object that `enable trace show --json` prints."""
    records = list(trace.calls())
    rows, phases = _by_overload(trace, records), _by_phase(trace)
    return {
        "trace": str(trace.path),
        "complete": trace.complete,
        "damage": trace.damage,
        "overloads": len(rows),
        "calls": sum(r["calls"] for r in rows),
        "signatures": len(trace.signatures),
        "stored": len(records),
        "computing": len({s.overload for s in trace.signatures.values() if s.computes}),
        "steps": trace.manifest.get("steps"),
        "ended_by": trace.manifest.get("ended_by", ""),
        "whole": trace.manifest.get("whole", []),
        "bytes": sum(p.stat().st_size for p in trace.path.iterdir()),
        "input_bytes": sum(r["bytes"] for r in rows),
        "phases": phases,
        "modules": _by_module(records),
        "levels": _levels(records),
        "not_stored": sum(not s.samples for s in trace.signatures.values()),
        "devices": _by_device(trace),
        "host": _host(trace),
        "unsupported": dict(_unsupported(records).most_common()),
        "skipped": trace.manifest.get("skipped") or {},
        "errors": trace.manifest.get("errors") or {},
        "histogram": {name: _histogram(of) for name, of in sorted(_grouped(records).items())},
        "rows": rows,
    }


def _by_device(trace: Trace) -> dict[str, int]:
    """Return call counts by device, the largest first; calls without a known device are not counted."""
    counts = Counter[str]()
    for s in trace.signatures.values():
        counts.update({s.device: s.calls} if s.device else {})
    return dict(counts.most_common())


def _host(trace: Trace) -> dict[str, int]:
    """Return call counts by overload for calls that compute on the host although the trace has a device."""
    counts = Counter[str]()
    for s in (trace.signatures[key] for key in sorted(trace.on_host)):
        counts.update({s.overload: s.calls} if s.computes else {})
    return dict(counts.most_common())


def _grouped(records: list[CallRecord]) -> dict[str, list[CallRecord]]:
    """Return the stored calls by overload."""
    groups: dict[str, list[CallRecord]] = {}
    for record in records:
        groups.setdefault(record.overload, []).append(record)
    return groups


def _by_overload(trace: Trace, records: list[CallRecord]) -> list[dict[str, Any]]:
    """Return a row per overload, the most called first; host calls are counted in a column of their own."""
    stored = _grouped(records)
    rows: dict[str, dict[str, Any]] = {}
    for s in trace.signatures.values():
        row = rows.setdefault(
            s.overload,
            {
                "overload": s.overload,
                "kind": s.kind,
                "calls": 0,
                "host": 0,
                "signatures": 0,
                "stored": 0,
                "phases": Counter(),
            },
        )
        row["host" if s.key in trace.on_host else "calls"] += s.calls
        row["signatures"] += 1
        row["stored"] += len(s.samples)
        row["phases"].update({} if s.key in trace.on_host else s.phases)
    for row in rows.values():
        overload_records = stored.get(row["overload"], [])
        row |= {
            "bytes": sum(r.nbytes for r in overload_records),
            "levels": _levels(overload_records),
            "phases": dict(row["phases"]),
        }
    return sorted(rows.values(), key=lambda r: (-r["calls"], r["overload"]))


def _by_phase(trace: Trace) -> dict[str, dict[str, int]]:
    """Return call and signature counts by phase, in the order of a training step."""
    counts: dict[str, Counter[str]] = {}
    for s in trace.asked:
        for phase, calls in s.phases.items():
            counts.setdefault(phase, Counter()).update({"calls": calls, "signatures": 1})
    order = [*(p for p in PHASES if p in counts), *(p for p in counts if p not in PHASES)]
    return {phase: dict(counts[phase]) for phase in order}


def _by_module(records: Iterable[CallRecord]) -> dict[str, dict[str, int]]:
    """Return stored calls and their input bytes by module, the largest first; "" is the whole model."""
    totals: dict[str, Counter[str]] = {}
    for r in records:
        totals.setdefault(r.module, Counter()).update({"stored": 1, "bytes": r.nbytes})
    return {name: dict(counts) for name, counts in sorted(totals.items(), key=lambda item: -item[1]["bytes"])}


def _levels(records: Iterable[CallRecord]) -> dict[str, int]:
    """Return stored calls by value level, in the order of LEVELS."""
    counts = Counter(r.level for r in records)
    return {level: counts[level] for level in LEVELS if counts[level]}


def _unsupported(records: Iterable[CallRecord]) -> Counter[str]:
    """Return stored calls by overload and by the kind of value that could not be recorded."""
    counts = Counter[str]()
    for r in records:
        counts.update({f"{r.overload}: {reason}" for reason in _reasons(r.header["tree"])})
    return counts


def _reasons(value: Any) -> set[str]:
    """Return the kinds of values in an argument tree that could not be recorded."""
    kinds, pending = set(), [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict) and "unsupported" in item:
            kinds.add(str(item["unsupported"]))
        else:
            pending += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return kinds


def _histogram(records: list[CallRecord]) -> list[dict[str, int]]:
    """Return stored calls by input bytes, in bins [from, to) with to = 4 * from.

    The first bins are [0, 1) and [1, 4).
    """
    counts = Counter(_bin(r.nbytes) for r in records)
    return [{"from": low, "to": max(low, 1) * _BIN if low else 1, "stored": n} for low, n in sorted(counts.items())]


def _bin(nbytes: int) -> int:
    """Return the lower bound of the bin for a byte count."""
    low = 1
    while low * _BIN <= nbytes:
        low *= _BIN
    return low if nbytes else 0


def trace_tables(summary: dict[str, Any], by: str | None = None, histogram: bool = False) -> str:
    """Return a trace summary as text, with totals at the end.

    Args:
        summary: Result of `trace_summary`.
        by: One of VIEWS; None for operators, phases and a list of gaps.
        histogram: True to append a histogram of input bytes.
    """
    views = {"op": _overloads, "phase": _phases, "module": _modules, "bytes": _bytes}
    parts = [_overloads(summary), _phases(summary), _quality(summary)] if by is None else [views[by](summary)]
    bars = _bars(summary) if histogram else ""
    return "\n\n".join([part for part in [*parts, bars, _total(summary)] if part])


def _total(summary: dict[str, Any]) -> str:
    """Return the lines with totals, and with the damage if the recording did not finish."""
    lines = [
        f"{summary['overloads']} overloads, {summary['calls']} calls, {summary['signatures']} signatures,"
        f" {summary['stored']} stored, {size(summary['bytes'])} on disk in {summary['trace']}"
    ]
    if not summary["computing"]:
        lines.append(NOTHING_TO_COVER)
    if not summary["complete"]:
        lines.append("UNFINISHED: the recording did not end; counted are the calls that were stored before")
        lines += summary["damage"]
    return "\n".join(map(summary_line, lines))


def _shown(rows: list[dict[str, Any]], left: str) -> str:
    """Return the first rows as a table, and a line with the number of the remaining ones."""
    more = [f"... and {len(rows) - _ROWS} more {left}"] if len(rows) > _ROWS else []
    return "\n".join([table(rows[:_ROWS]), *more]) if rows else ""


def _overloads(summary: dict[str, Any]) -> str:
    rows = [
        {
            "overload": r["overload"],
            "kind": r["kind"],
            "signatures": r["signatures"],
            "stored": r["stored"],
            "input bytes": size(r["bytes"]),
            "calls": r["calls"],
            **({"on the host": r["host"]} if len(summary["devices"]) > 1 else {}),
            **{phase: r["phases"].get(phase, 0) for phase in summary["phases"]},
        }
        for r in summary["rows"]
    ]
    optional = ("signatures", "input bytes", "stored", "on the host", "kind", *reversed(summary["phases"]))
    return table(rows, optional) if rows else ""


def _phases(summary: dict[str, Any]) -> str:
    rows = [{"phase": p, **counts} for p, counts in summary["phases"].items()]
    return table(rows) if rows else ""


def _modules(summary: dict[str, Any]) -> str:
    rows = [
        {"module": name or "(the model)", "stored": m["stored"], "input bytes": size(m["bytes"])}
        for name, m in summary["modules"].items()
    ]
    return _shown(rows, "modules: --json")


def _bytes(summary: dict[str, Any]) -> str:
    order = sorted(summary["rows"], key=lambda r: (-r["bytes"], r["overload"]))
    whole = max(summary["input_bytes"], 1)
    rows = [
        {
            "overload": r["overload"],
            "stored": r["stored"],
            "input bytes": size(r["bytes"]),
            "percent": round(100 * r["bytes"] / whole, 1),
            "values": _counts(r["levels"]),
        }
        for r in order
    ]
    return table(rows, ("values", "stored")) if rows else ""


def _counts(levels: dict[str, int]) -> str:
    return ", ".join(f"{count} {level}" for level, count in levels.items()) or "-"


def _quality(summary: dict[str, Any]) -> str:
    """Return the value levels of the stored calls, and the calls that could not be recorded, with reasons."""
    lines = [_steps(summary), *_places(summary), _composites(summary), f"values       {_counts(summary['levels'])}"]
    if summary["not_stored"]:
        lines.append(f"not stored   {summary['not_stored']} signatures are counted without a stored call")
    for name in ("unsupported", "skipped"):
        lines += [f"{name:<11}  {count} calls: {reason}" for reason, count in summary[name].items()]
    lines += [f"error        {e['count']} in {op}: {e['first']}" for op, e in summary["errors"].items()]
    return "\n".join(map(summary_line, filter(None, lines)))


def _places(summary: dict[str, Any]) -> list[str]:
    """Return call counts by device and for the host; empty unless there is more than one device."""
    if len(summary["devices"]) < 2:
        return []
    devices = ", ".join(f"{calls} calls on {name}" for name, calls in summary["devices"].items())
    lines = [f"devices      {devices}"]
    if summary["host"]:
        lines.append(f"host work    {named_counts(summary['host'])}: not asked of the device, and not among its calls")
    return lines


def _steps(summary: dict[str, Any]) -> str:
    """Return the number of steps and the event that ended them; '' if the trace does not record it."""
    ends = {
        "marks": "each ended by recorder.step()",
        "optimizer": "each ended by an optimizer's step: recorder.step() was never called",
        None: "not ended: neither recorder.step() nor an optimizer's step was seen",
    }
    steps, by = summary["steps"], summary["ended_by"]
    known = steps and isinstance(by, str | None) and by in ends
    return f"steps        {steps}, {ends[by]}" if known else ""


def _composites(summary: dict[str, Any]) -> str:
    """Return a line on composite operators that another device may call in parts."""
    names = ", ".join(map(str, summary["whole"]))
    return (
        f"whole        {names}: this device has kernels for them; one without is asked for their parts" if names else ""
    )


def _bars(summary: dict[str, Any]) -> str:
    """Return a histogram of input bytes per overload as text, one bin per line."""
    longest = max((b["stored"] for bins in summary["histogram"].values() for b in bins), default=1)
    rows = [
        {
            "overload": name if i == 0 else "",
            "input bytes": "0" if not b["from"] else f"{size(b['from'])} to {size(b['to'])}",
            "stored": b["stored"],
            "": "#" * max(round(_BAR * b["stored"] / longest), 1),
        }
        for name, bins in summary["histogram"].items()
        for i, b in enumerate(bins)
    ]
    return table(rows) if rows else ""


def diff_summary(names: tuple[str, str], diff: Diff) -> dict[str, Any]:
    """Return the object that `enable trace diff --json` prints."""
    parts: dict[str, list[dict[str, Any]]] = {"new": [], "gone": [], "changed": []}
    for c in diff.changes:
        parts[c.kind].append({"overload": c.overload, "arguments": c.arguments, "calls": [c.before, c.after]})
    return {
        "traces": list(names),
        "equal": diff.equal,
        "same": diff.same,
        "versions": list(diff.versions),
        "settings": {name: list(pair) for name, pair in diff.settings.items()},
        "overloads": [{"overload": c.overload, "calls": [c.before, c.after]} for c in diff.overloads],
        **parts,
    }


def _named(versions: dict[str, Any]) -> str:
    """Return names and values as text, without None."""
    return ", ".join(f"{name} {value}" for name, value in versions.items() if value is not None)


def diff_tables(summary: dict[str, Any]) -> str:
    """Return a diff as text: versions, settings, new and removed overloads, then signatures by overload."""
    a, b = summary["traces"]
    lines = [f"{name}: {_named(versions)}" for name, versions in zip((a, b), summary["versions"], strict=True)]
    lines += [f"{name}: {pair[0]} in {a}, {pair[1]} in {b}" for name, pair in summary["settings"].items()]
    for c in summary["overloads"]:
        lines.append(f"{c['overload']} is {'gone' if c['calls'][0] else 'new'}: {sum(c['calls'])} calls")
    lines = [printable(line) for line in lines]
    rows = [
        {
            "overload": r["overload"],
            "": kind,
            "before": r["calls"][0],
            "after": r["calls"][1],
            "arguments": r["arguments"],
        }
        for kind in ("new", "gone", "changed")
        for r in summary[kind]
    ]
    if rows:
        lines += ["", table(sorted(rows, key=lambda r: r["overload"])), ""]
    counts = ", ".join(f"{len(summary[kind])} {kind}" for kind in ("new", "gone", "changed"))
    return "\n".join([*lines, f"{counts}, {summary['same']} signatures as before"])
