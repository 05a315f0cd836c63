"""Count the calls of a training by the implementation that answered them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from enable.library import Registration
from enable.naming import shown_path
from enable.serve import precision
from enable.serve.arguments import ELSEWHERE
from generate.kernel_library import Library
from traces.facts import tagged
from traces.overloads import bind, kind, name_of

_COPIES = tagged("between_devices")


class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the calls on a device that need a kernel, by overload.

    Attributes:
        calls: Number of calls by overload.
        precisions: Dtypes in which each overload computed.
        unfinished: The overload whose call raised NotImplementedError last; empty if none did.
    """

    def __init__(self, device: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()
        self.precisions: defaultdict[str, set[str]] = defaultdict(set)
        self.unfinished = ""
        self._device = device

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        try:
            result = func(*args, **(kwargs or {}))
        except NotImplementedError:
            self.unfinished = name_of(func)
            raise
        if kind(func, bind(func, args, kwargs or {})) in ("compute", "random"):
            tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
            devices = {t.device.type for t in tensors}
            transfer = len(devices) > 1 and name_of(func) in _COPIES
            if self._device in devices and not transfer:
                self.calls[name_of(func)] += 1
                self.precisions[name_of(func)] |= precision.computed_in(func, tensors)
        return result


def reasons_by_overload(registration: Registration) -> dict[str, str]:
    """Return why overloads were not served, including those that were not called."""
    reasons_by_name = {name: next(iter(reasons)) for name, reasons in registration.counts.unserved.items()}
    return {**reasons_by_name, **registration.left_out}


def served_calls(registration: Registration, library: Library, compiled: Counter[str]) -> dict[str, dict[str, Any]]:
    """Return the served calls by overload, most calls first; `compiled` adds single calls in compiled graphs."""
    rows_by_overload = {}
    for overload, calls in (registration.counts.served + compiled).most_common():
        match = library.match(overload)
        kernel = "composed" if match is None else shown_path(match.kernel.path)
        unjudged = registration.counts.unjudged.get(overload, Counter[str]())
        rows_by_overload[overload] = {"calls": calls, "kernel": kernel, "unjudged": dict(unjudged)}
    return rows_by_overload


def unserved_calls(counts: Mapping[str, Counter[str]]) -> Iterator[tuple[str, Counter[str]]]:
    """Yield the unserved calls' reasons by overload, without transfers between devices."""
    for name, reasons in counts.items():
        relevant = Counter({r: n for r, n in reasons.items() if not (name in _COPIES and r == ELSEWHERE)})
        if relevant:
            yield name, relevant
