"""Estimate the cost of a recorded call: bytes moved, operations, and a time derived from both.

The time is that of a nominal chip: it ranks operators and does not predict any device. It is the longer of moving the
bytes and doing the operations, and at least the time of a launch.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from traces import UserError
from traces.overloads import base_name, resolve
from traces.records import CallRecord
from traces.store import Trace

BANDWIDTH = 1e12  # bytes per second
RATE = 1e14  # floating-point operations per second
LAUNCH = 5e-6  # seconds; the minimum time per call


@dataclass(frozen=True)
class Cost:
    """The cost of some calls: bytes read and written, floating-point operations, seconds on the nominal chip."""

    nbytes: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.nbytes + other.nbytes, self.flops + other.flops, self.seconds + other.seconds)

    def times(self, n: float) -> Cost:
        """Return the cost multiplied by n."""
        return Cost(n * self.nbytes, n * self.flops, n * self.seconds)


@dataclass
class Use:
    """How a trace uses an overload.

    Attributes:
        cost: Cost of all its calls.
        modules: Modules that make the stored calls, in order of first use.
    """

    cost: Cost
    modules: dict[str, None]


def uses(trace: Trace) -> dict[str, Use]:
    """Return each overload's use. A signature without a stored call costs the overload's average."""
    cost_by_signature: dict[str, Cost] = {}  # keyed by signature
    modules: dict[str, dict[str, None]] = defaultdict(dict)
    for record in trace.calls():
        if record.signature in trace.on_host:
            continue
        cost_by_signature.setdefault(record.signature, cost_of(record))
        modules[record.overload].setdefault(record.module)
    uses_by_overload: dict[str, Use] = {}
    for overload in {s.overload for s in trace.asked}:
        signatures = [s for s in trace.asked if s.overload == overload]
        priced_calls = sum(s.calls for s in signatures if s.key in cost_by_signature)
        cost = sum((cost_by_signature[s.key].times(s.calls) for s in signatures if s.key in cost_by_signature), Cost())
        calls = sum(s.calls for s in signatures)
        total = cost.times(calls / priced_calls) if priced_calls else Cost(seconds=LAUNCH).times(calls)
        uses_by_overload[overload] = Use(total, modules[overload])
    return uses_by_overload


def cost_of(record: CallRecord) -> Cost:
    """Return the cost of one stored call; its bytes are those read, aliased ones once, and those written."""
    written = sum(math.prod(t["shape"]) * getattr(torch, t["dtype"]).itemsize for t in result_tensors(record.results))
    nbytes, flops = float(record.nbytes + written), float(_flops(record))
    return Cost(nbytes, flops, max(nbytes / BANDWIDTH, flops / RATE, LAUNCH))


def result_tensors(results: Any) -> list[dict[str, Any]]:
    """Return the tensors in nested results; a sparse tensor contributes its parts."""
    if isinstance(results, dict):
        return (
            [results]
            if results.keys() >= {"shape", "dtype"}
            else [t for v in results.values() for t in result_tensors(v)]
        )
    return [t for v in results for t in result_tensors(v)] if isinstance(results, list) else []


def _flops(record: CallRecord) -> int:
    """Return PyTorch's FLOP count for products, convolutions and attention, and 0 for all other calls."""
    try:
        op = resolve(record.overload)
    except UserError:  # a custom operator, or one that this PyTorch version lacks
        return 0
    name = base_name(op).replace("_for_cpu", "")
    formula = flop_registry.get(getattr(torch.ops.aten, name, None))
    if formula is None or not record.overload.startswith("aten::"):
        return 0
    shapes = [torch.empty(t["shape"], device="meta") for t in record.header["tensors"]]
    arguments = [_argument(record.header["tree"].get(a.name), shapes) for a in op._schema.arguments if not a.kwarg_only]
    try:
        return int(formula(*arguments, out_val=_argument(record.results.get("return"), shapes)))
    except AssertionError:  # the formula does not support the call, such as attention with fewer key heads
        return 0


def _argument(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Convert a recorded value for a formula, which reads only tensor shapes."""
    if isinstance(value, list):
        return [_argument(v, tensors) for v in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    return torch.empty(value["shape"], device="meta") if "shape" in value else next(iter(value.values()))
