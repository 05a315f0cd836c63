"""A trace's stored calls as a timeline, in the JSON that Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from enable.cover.cost import LAUNCH, cost_of
from enable.cover.coverage import is_known
from enable.cover.session import model_of
from traces.frames import row

if TYPE_CHECKING:
    from traces import CallRecord, Trace

_TOLD = ("id", "calls", "kind", "level", "bytes", "tensor_dtypes", "tensor_shapes", "arguments")
_NOTE = "stored calls, the first of each signature, in their order; their lengths are estimates for a nominal chip"


def timeline(trace: Trace, records: Sequence[CallRecord]) -> dict[str, Any]:
    """An object of the Trace Event Format: a track for each thread, on which calls lie in modules, these in phases and
    these in steps. Times are in microseconds: how long a call takes on the nominal chip of enable/cover/cost.py."""
    title = trace.path.name.removesuffix(".trace")
    named = {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": model_of(trace)}}
    events = [named, *_threads(records)]
    at: dict[int, float] = {}
    opened: dict[int, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda record: record.seq):
        now, stack = at.setdefault(record.thread, 0.0), opened.setdefault(record.thread, [])
        around = [f"step {record.step}", record.phase or "no phase", *filter(None, record.module.split("."))]
        same = 0
        while same < min(len(around), len(stack)) and around[same] == stack[same]["name"]:
            same += 1
        del stack[same:]
        new = [_slice(name, "around", now, record.thread, {}) for name in around[same:]]
        told = row(record, trace.signatures[record.signature])
        args = {name: told[name] for name in _TOLD}
        call = _slice(record.overload, record.kind, now, record.thread, args)
        stack += new
        events += [*new, call]  # a slice comes before those within
        seconds = cost_of(record).seconds if is_known(record.overload) else LAUNCH
        at[record.thread] = now + 1e6 * seconds
        for each in (*stack, call):
            each["dur"] = at[record.thread] - each["ts"]
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"trace": title, "note": _NOTE}}


def _threads(records: Sequence[CallRecord]) -> Iterator[dict[str, Any]]:
    for thread in sorted({record.thread for record in records}):
        name = f"thread {thread}" if thread else "main thread"
        yield {"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}}


def _slice(name: str, kind: str, began: float, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    """One that ends where it begins, as yet."""
    return {"name": name, "cat": kind, "ph": "X", "ts": began, "dur": 0.0, "pid": 1, "tid": thread, "args": args}
