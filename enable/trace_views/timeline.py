"""Convert a trace's stored calls to a timeline in the JSON format of Perfetto and chrome://tracing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from enable.cover.cost import LAUNCH, cost_of
from enable.cover.needs import is_known
from enable.cover.session import model_of
from traces.frames import row

if TYPE_CHECKING:
    from traces import CallRecord, Trace

_TOLD = ("id", "calls", "kind", "level", "bytes", "tensor_dtypes", "tensor_shapes", "arguments")
_NOTE = "stored calls, the first of each signature, in their order; their lengths are estimates for a nominal chip"


def timeline(trace: Trace, records: Sequence[CallRecord]) -> dict[str, Any]:
    """Return an object in the Trace Event Format, with one track per thread.

    Calls are nested in modules, modules in phases, and phases in steps. Times are in microseconds: estimated
    durations on the nominal chip in enable/cover/cost.py.
    """
    title = trace.path.name.removesuffix(".trace")
    named = {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": model_of(trace)}}
    events = [named, *_threads(records)]
    clock: dict[int, float] = {}
    opened: dict[int, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda record: record.seq):
        now, stack = clock.setdefault(record.thread, 0.0), opened.setdefault(record.thread, [])
        enclosing = [f"step {record.step}", record.phase or "no phase", *filter(None, record.module.split("."))]
        depth = 0
        while depth < min(len(enclosing), len(stack)) and enclosing[depth] == stack[depth]["name"]:
            depth += 1
        del stack[depth:]
        new = [_slice(name, "around", now, record.thread, {}) for name in enclosing[depth:]]
        values = row(record, trace.signatures[record.signature])
        args = {name: values[name] for name in _TOLD}
        call = _slice(record.overload, record.kind, now, record.thread, args)
        stack += new
        events += [*new, call]  # the format requires a slice before its nested slices
        seconds = cost_of(record).seconds if is_known(record.overload) else LAUNCH
        clock[record.thread] = now + 1e6 * seconds
        for each in (*stack, call):
            each["dur"] = clock[record.thread] - each["ts"]
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"trace": title, "note": _NOTE}}


def _threads(records: Sequence[CallRecord]) -> Iterator[dict[str, Any]]:
    """Yield an event with the name for each thread."""
    for thread in sorted({record.thread for record in records}):
        name = f"thread {thread}" if thread else "main thread"
        yield {"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}}


def _slice(name: str, kind: str, began: float, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    """Return a slice with duration 0; `timeline` extends it."""
    return {"name": name, "cat": kind, "ph": "X", "ts": began, "dur": 0.0, "pid": 1, "tid": thread, "args": args}
