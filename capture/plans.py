"""Plans: how the recorder treats each operator."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch._ops import OpOverload

from capture.parts import is_divisible
from capture.tape import is_producer
from traces.overloads import name_of, written

HIGHER_ORDER = "higher-order operators"
_MARKERS = frozenset({"profiler", "prim"})  # namespaces of calls that compute nothing
_COLLECTIVES = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd"})


@dataclass(frozen=True, slots=True)
class CapturePlan:
    """Properties of an operator that are known before its first call.

    Attributes:
        op: The operator.
        name: Its full name.
        skipped: Reason why its calls are not recorded; empty for markers, None if they are recorded.
        mutates: True if it writes an argument.
        composite: True if it decomposes into other operators when it arrives as a whole.
        produces: True if a backward operator takes its results.
        question: True if it queries metadata, such as a size, and never reaches the dispatcher.
        divisible: True if some of its calls run by other operators.
        effects: True if running a call twice differs from running it once.
    """

    op: Any
    name: str
    skipped: str | None
    mutates: bool = False
    composite: bool = False
    produces: bool = False
    question: bool = False
    divisible: bool = False
    effects: bool = False


def make_plan(func: Any, ops: tuple[str, ...]) -> CapturePlan:
    """Return the plan of an operator. `ops` are patterns of overloads to record; empty for all."""
    if not isinstance(func, OpOverload):
        return CapturePlan(func, str(func), HIGHER_ORDER, divisible=is_divisible(func))
    if func.namespace in _MARKERS:
        return CapturePlan(func, name_of(func), "")
    if func.namespace in _COLLECTIVES:
        return CapturePlan(func, name_of(func), "collectives")
    if not torch._C._dispatch_has_kernel(name_of(func)):
        return CapturePlan(func, name_of(func), None, question=True)
    composite = func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    skipped = "not among --ops" if ops and not any(fnmatchcase(name_of(func), p) for p in ops) else None
    mutates = bool(written(func))
    return CapturePlan(
        func,
        name_of(func),
        skipped,
        mutates,
        composite,
        is_producer(func),
        divisible=is_divisible(func),
        effects=mutates or torch.Tag.nondeterministic_seeded in func.tags,
    )
