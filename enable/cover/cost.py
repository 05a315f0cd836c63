"""What a recorded call costs: bytes that it moves, operations that it needs, and a time made of the two.

The time is that of a nominal chip, so that it ranks operators and says nothing of any device: the longer of moving the
bytes and doing the operations, and no call is shorter than a launch.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from traces.overloads import base_name, resolve
from traces.records import CallRecord
from traces.store import Trace

BANDWIDTH = 1e12  # bytes a second
RATE = 1e14  # operations on floating numbers a second
LAUNCH = 5e-6  # seconds; the least that a call takes


@dataclass(frozen=True)
class Cost:
    """Of some calls: bytes read and written, floating-point operations, seconds on the nominal chip."""

    nbytes: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.nbytes + other.nbytes, self.flops + other.flops, self.seconds + other.seconds)

    def times(self, n: float) -> Cost:
        return Cost(n * self.nbytes, n * self.flops, n * self.seconds)


@dataclass
class Use:
    """How a trace uses an overload. cost: of all its calls. modules: that make the stored ones, the first first."""

    cost: Cost
    modules: dict[str, None]


def uses(trace: Trace) -> dict[str, Use]:
    """By overload. A signature without a stored call is taken to cost what the overload's others do on average."""
    each: dict[str, Cost] = {}  # by signature
    modules: dict[str, dict[str, None]] = defaultdict(dict)
    for record in trace.calls():
        if record.signature in trace.on_host:
            continue
        each.setdefault(record.signature, cost_of(record))
        modules[record.overload].setdefault(record.module)
    found: dict[str, Use] = {}
    for overload in {s.overload for s in trace.asked}:
        mine = [s for s in trace.asked if s.overload == overload]
        known = sum(s.calls for s in mine if s.key in each)
        cost = sum((each[s.key].times(s.calls) for s in mine if s.key in each), Cost())
        calls = sum(s.calls for s in mine)
        whole = cost.times(calls / known) if known else Cost(seconds=LAUNCH).times(calls)
        found[overload] = Use(whole, modules[overload])
    return found


def cost_of(record: CallRecord) -> Cost:
    """Of one stored call. Bytes: what it reads, aliased ones once, and what it writes."""
    written = sum(math.prod(t["shape"]) * getattr(torch, t["dtype"]).itemsize for t in result_tensors(record.results))
    nbytes, flops = float(record.nbytes + written), float(_flops(record))
    return Cost(nbytes, flops, max(nbytes / BANDWIDTH, flops / RATE, LAUNCH))


def result_tensors(results: Any) -> list[dict[str, Any]]:
    """The tensors among results, which may be nested; of a sparse one its parts."""
    if isinstance(results, dict):
        return (
            [results]
            if results.keys() >= {"shape", "dtype"}
            else [t for v in results.values() for t in result_tensors(v)]
        )
    return [t for v in results for t in result_tensors(v)] if isinstance(results, list) else []


def _flops(record: CallRecord) -> int:
    """As PyTorch's own counter has it: of products, convolutions and attention; 0 of all else, which moves bytes."""
    op = resolve(record.overload)
    name = base_name(op).replace("_for_cpu", "")
    formula = flop_registry.get(getattr(torch.ops.aten, name, None))
    if formula is None or not record.overload.startswith("aten::"):
        return 0
    shapes = [torch.empty(t["shape"], device="meta") for t in record.header["tensors"]]
    arguments = [_argument(record.header["tree"].get(a.name), shapes) for a in op._schema.arguments if not a.kwarg_only]
    try:
        return int(formula(*arguments, out_val=_argument(record.results.get("return"), shapes)))
    except AssertionError:  # a kind of call that the formula does not know, as attention with fewer heads of keys
        return 0


def _argument(value: Any, tensors: list[torch.Tensor]) -> Any:
    """A recorded value for a formula, which asks tensors for nothing but shapes."""
    if isinstance(value, list):
        return [_argument(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    return torch.empty(value["shape"], device="meta") if "shape" in value else next(iter(value.values()))
