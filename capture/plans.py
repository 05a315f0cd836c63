"""What the recorder does with each operator."""

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
    """What is known of an operator before its first call.

    skipped: why its calls are not recorded, empty for markers, None for what is recorded. mutates: writes an argument.
    composite: decomposes into other operators when it arrives whole. produces: a backward operator takes its results.
    question: asks for metadata, such as a size, and never reaches the dispatcher. divisible: some calls of it run by
    other operators. effects: to run a call twice is not the same as to run it once.
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
    """The plan of an operator. ops: record only overloads that match one of these patterns, if there are any."""
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
