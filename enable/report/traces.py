"""Summarize a trace: its step as a timeline, the memory of its inputs, and the distribution of shapes and dtypes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from enable.cover.session import model_of
from enable.trace_views.timeline import timeline
from traces import CallRecord, Trace
from traces.frames import frame_of

MAX_TIMELINE_CALLS = 2_500  # the timeline is drawn for traces with at most this many stored calls
MODULES = 40  # modules on the page, largest memory first


def trace_view(name: str, trace: Trace) -> dict[str, Any]:
    """Return a trace's summary. Raise TraceError if it is damaged."""
    records = list(trace.calls())
    frame = frame_of(trace, records)
    memory = frame.groupby(["module", "phase"]).bytes.sum().unstack(fill_value=0)
    largest = memory.sum(axis=1).sort_values(ascending=False).head(MODULES).index
    numbers = Counter(n for record in records for n in map(_exponent, record.header["tensors"]))
    dtypes = Counter(d for words in frame.tensor_dtypes for d in words.split())
    return {
        "name": name,
        "model": model_of(trace),
        "device": str(trace.manifest.get("info", {}).get("device", "")),
        "stored": len(frame),
        "calls": sum(s.calls for s in trace.signatures.values()),
        "phases": [str(phase) for phase in memory.columns],
        "memory": [{"module": str(m) or "(model)", "bytes": [int(n) for n in memory.loc[m]]} for m in largest],
        "dtypes": dict(dtypes.most_common()),
        "sizes": {str(exponent): numbers[exponent] for exponent in sorted(numbers)},
        "timeline": _slices(trace, records) if len(frame) <= MAX_TIMELINE_CALLS else [],
    }


def _exponent(tensor: dict[str, Any]) -> int:
    """Return the binary logarithm of the number of elements, rounded down; -1 for no elements."""
    elements = int(math.prod(tensor["shape"]))
    return elements.bit_length() - 1


def _slices(trace: Trace, records: Sequence[CallRecord]) -> list[list[Any]]:
    """Return the timeline as [name, depth, begin, duration, kind]; a call lies one level below its innermost module."""
    events = [e for e in timeline(trace, records)["traceEvents"] if e["ph"] == "X" and e["tid"] == 0]
    ends: list[float] = []
    slices = []
    for event in events:
        while ends and ends[-1] <= event["ts"] + 1e-9:
            ends.pop()
        slices.append([event["name"], len(ends), round(event["ts"], 3), round(event["dur"], 3), event["cat"]])
        ends.append(event["ts"] + event["dur"])
    return slices
