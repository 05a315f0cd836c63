"""What `enable trace` prints: a trace at a glance, and what differs between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from enable.tables import NOTHING_TO_COVER, PHASES, named_counts, size, table

if TYPE_CHECKING:
    from traces import CallRecord, Trace
    from traces.diff import Diff

VIEWS = ("op", "phase", "module", "bytes")
LEVELS = ("full", "rows", "seeded", "stats", "meta")
_BIN = 4  # a bin of the histogram ends at this many times its beginning
_BAR = 24  # characters of the longest bar
_ROWS = 40  # of a table without --json


def trace_summary(trace: Trace) -> dict[str, Any]:
    """What `enable trace show --json` prints."""
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
    """Calls by device, the most first; none where the trace does not say."""
    found = Counter[str]()
    for s in trace.signatures.values():
        found.update({s.device: s.calls} if s.device else {})
    return dict(found.most_common())


def _host(trace: Trace) -> dict[str, int]:
    """Calls by overload of what computes on the host, beside a device."""
    found = Counter[str]()
    for s in (trace.signatures[key] for key in sorted(trace.on_host)):
        found.update({s.overload: s.calls} if s.computes else {})
    return dict(found.most_common())


def _grouped(records: list[CallRecord]) -> dict[str, list[CallRecord]]:
    found: dict[str, list[CallRecord]] = {}
    for record in records:
        found.setdefault(record.overload, []).append(record)
    return found


def _by_overload(trace: Trace, records: list[CallRecord]) -> list[dict[str, Any]]:
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
        mine = stored.get(row["overload"], [])
        row |= {"bytes": sum(r.nbytes for r in mine), "levels": _levels(mine), "phases": dict(row["phases"])}
    return sorted(rows.values(), key=lambda r: (-r["calls"], r["overload"]))


def _by_phase(trace: Trace) -> dict[str, dict[str, int]]:
    """Calls and signatures of each phase, in the order of a step."""
    found: dict[str, Counter[str]] = {}
    for s in trace.asked:
        for phase, calls in s.phases.items():
            found.setdefault(phase, Counter()).update({"calls": calls, "signatures": 1})
    order = [*(p for p in PHASES if p in found), *(p for p in found if p not in PHASES)]
    return {phase: dict(found[phase]) for phase in order}


def _by_module(records: Iterable[CallRecord]) -> dict[str, dict[str, int]]:
    """Stored calls and bytes of their inputs by module, most bytes first; the whole model is ""."""
    found: dict[str, Counter[str]] = {}
    for r in records:
        found.setdefault(r.module, Counter()).update({"stored": 1, "bytes": r.nbytes})
    return {name: dict(counts) for name, counts in sorted(found.items(), key=lambda item: -item[1]["bytes"])}


def _levels(records: Iterable[CallRecord]) -> dict[str, int]:
    counts = Counter(r.level for r in records)
    return {level: counts[level] for level in LEVELS if counts[level]}


def _unsupported(records: Iterable[CallRecord]) -> Counter[str]:
    """Stored calls by overload and the kind of value that could not be recorded."""
    found = Counter[str]()
    for r in records:
        found.update({f"{r.overload}: {reason}" for reason in _reasons(r.header["tree"])})
    return found


def _reasons(value: Any) -> set[str]:
    found, pending = set(), [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict) and "unsupported" in item:
            found.add(str(item["unsupported"]))
        else:
            pending += item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return found


def _histogram(records: list[CallRecord]) -> list[dict[str, int]]:
    """Stored calls by bytes of inputs, in bins [from, to) of which each ends at four times its beginning."""
    counts = Counter(_bin(r.nbytes) for r in records)
    return [{"from": low, "to": max(low, 1) * _BIN if low else 1, "stored": n} for low, n in sorted(counts.items())]


def _bin(nbytes: int) -> int:
    low = 1
    while low * _BIN <= nbytes:
        low *= _BIN
    return low if nbytes else 0


def trace_tables(summary: dict[str, Any], by: str | None = None, histogram: bool = False) -> str:
    """The tables of one view, or operators, phases, levels and what is missing; totals last."""
    views = {"op": _overloads, "phase": _phases, "module": _modules, "bytes": _bytes}
    parts = [_overloads(summary), _phases(summary), _quality(summary)] if by is None else [views[by](summary)]
    bars = _bars(summary) if histogram else ""
    return "\n\n".join([part for part in [*parts, bars, _total(summary)] if part])


def _total(summary: dict[str, Any]) -> str:
    lines = [
        f"{summary['overloads']} overloads, {summary['calls']} calls, {summary['signatures']} signatures,"
        f" {summary['stored']} stored, {size(summary['bytes'])} on disk in {summary['trace']}"
    ]
    if not summary["computing"]:
        lines.append(NOTHING_TO_COVER)
    if not summary["complete"]:
        lines.append("UNFINISHED: the recording did not end; counted are the calls that were stored before")
        lines += summary["damage"]
    return "\n".join(lines)


def _shown(rows: list[dict[str, Any]], left: str) -> str:
    """The first rows, and how many more there are."""
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
    return table(rows) if rows else ""


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
    return table(rows) if rows else ""


def _counts(levels: dict[str, int]) -> str:
    return ", ".join(f"{count} {level}" for level, count in levels.items()) or "-"


def _quality(summary: dict[str, Any]) -> str:
    """Value levels of the stored calls, and what could not be recorded, with the reason."""
    lines = [_steps(summary), *_places(summary), _composites(summary), f"values       {_counts(summary['levels'])}"]
    if summary["not_stored"]:
        lines.append(f"not stored   {summary['not_stored']} signatures are counted without a stored call")
    for name in ("unsupported", "skipped"):
        lines += [f"{name:<11}  {count} calls: {reason}" for reason, count in summary[name].items()]
    lines += [f"error        {e['count']} in {op}: {e['first']}" for op, e in summary["errors"].items()]
    return "\n".join(filter(None, lines))


def _places(summary: dict[str, Any]) -> list[str]:
    """Calls by device, and what computed on the host, where there is more than one device."""
    if len(summary["devices"]) < 2:
        return []
    devices = ", ".join(f"{calls} calls on {name}" for name, calls in summary["devices"].items())
    lines = [f"devices      {devices}"]
    if summary["host"]:
        lines.append(f"host work    {named_counts(summary['host'])}: not asked of the device, and not among its calls")
    return lines


def _steps(summary: dict[str, Any]) -> str:
    """How many steps there are and what ended them; nothing of a trace that does not say."""
    ends = {
        "marks": "each ended by recorder.step()",
        "optimizer": "each ended by an optimizer's step: recorder.step() was never called",
        None: "not ended: neither recorder.step() nor an optimizer's step was seen",
    }
    steps, by = summary["steps"], summary["ended_by"]
    known = steps and isinstance(by, str | None) and by in ends
    return f"steps        {steps}, {ends[by]}" if known else ""


def _composites(summary: dict[str, Any]) -> str:
    """What another device may be asked for in parts."""
    names = ", ".join(map(str, summary["whole"]))
    return (
        f"whole        {names}: this device has kernels for them; one without is asked for their parts" if names else ""
    )


def _bars(summary: dict[str, Any]) -> str:
    """Bytes of the inputs of each overload's stored calls, one bin a line."""
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


def diff_summary(names: tuple[str, str], found: Diff) -> dict[str, Any]:
    """What `enable trace diff --json` prints."""
    parts: dict[str, list[dict[str, Any]]] = {"new": [], "gone": [], "changed": []}
    for c in found.changes:
        parts[c.kind].append({"overload": c.overload, "arguments": c.arguments, "calls": [c.before, c.after]})
    return {
        "traces": list(names),
        "equal": found.equal,
        "same": found.same,
        "versions": list(found.versions),
        "settings": {name: list(pair) for name, pair in found.settings.items()},
        "overloads": [{"overload": c.overload, "calls": [c.before, c.after]} for c in found.overloads],
        **parts,
    }


def _named(versions: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in versions.items() if value is not None)


def diff_tables(summary: dict[str, Any]) -> str:
    """Versions, differing settings, whole overloads that came or went, then signatures by overload."""
    a, b = summary["traces"]
    lines = [f"{name}: {_named(versions)}" for name, versions in zip((a, b), summary["versions"], strict=True)]
    lines += [f"{name}: {pair[0]} in {a}, {pair[1]} in {b}" for name, pair in summary["settings"].items()]
    for c in summary["overloads"]:
        lines.append(f"{c['overload']} is {'gone' if c['calls'][0] else 'new'}: {sum(c['calls'])} calls")
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
