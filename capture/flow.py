"""Recorder for dataflow: the values that each call reads, produces and writes.

A storage is identified by a weak reference, which keeps its id from being reused but keeps none of its bytes. Writes
are counted for each storage. The write count and the tensor's place in the storage together identify a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from traces.dataflow import Dataflow, FlowCall, ValueType, without_own_device
from traces.live import tensors_in, unsupported_kind
from traces.overloads import name_of, written
from traces.values import DTYPE_NAMES, encoded
from traces.writer import CallSite


@dataclass(frozen=True, slots=True)
class FlowBegun:
    """A call that is about to run.

    Attributes:
        index: Its position in the flow.
        wrote: The tensors that it writes.
    """

    index: int
    wrote: tuple[torch.Tensor, ...]


class FlowTape:
    """A dataflow being recorded. Not safe for several threads at once. Holds no tensor between calls."""

    def __init__(self) -> None:
        self._memory: dict[int, tuple[int, StorageWeakRef]] = {}  # number and reference, by identity of the storage
        self._writes = Counter[int]()  # by number of the memory
        self._numbers: dict[Hashable, int] = {}
        self._values: list[ValueType] = []
        self._calls: list[FlowCall | None] = []
        self._made: set[int] = set()
        self._kept: set[int] = set()

    def begin(self, op: Any, arguments: dict[str, Any], site: CallSite) -> FlowBegun:
        """Record the values that a call is about to read and overwrite."""
        portable = without_own_device(arguments, tensors_in(arguments))
        tree = {name: encoded(_without_generator(value), self._number) for name, value in portable.items()}
        wrote = tuple(t for name in sorted(written(op)) for t in tensors_in(arguments[name]))
        writes = tuple(n for n in map(self._number, wrote) if n is not None)
        self._calls.append(FlowCall(name_of(op), tree, (), writes, site.phase, site.module))
        return FlowBegun(len(self._calls) - 1, wrote)

    def end(self, begun: FlowBegun, result: Any, stored: int | None) -> None:
        """Record the values that a call has produced. `stored` is the id of the stored call, if it is stored."""
        call = self._calls[begun.index]
        assert call is not None
        self._overwrite(begun.wrote)
        results = result if isinstance(result, tuple | list) else [result]
        flat = [t for r in results for t in (r if isinstance(r, list | tuple) else [r])]
        before = len(self._values)
        numbers = tuple(map(self._number, flat))
        self._made.update(n for n in numbers if n is not None and (n >= before or begun.wrote))
        self._calls[begun.index] = replace(call, results=numbers, stored=stored)

    def discard(self, begun: FlowBegun) -> None:
        """Forget a call that has raised; the tensors that it may have written get new values."""
        self._overwrite(begun.wrote)
        self._calls[begun.index] = None

    def pass_by(self, values: Any) -> None:
        """Handle a call that is not recorded: it reads its arguments, and may write them."""
        touched = tuple(tensors_in(values))
        self._kept.update(n for n in map(self._number, touched) if n is not None)
        self._overwrite(touched)

    def finish(self) -> Dataflow:
        """Return the dataflow. Values in memory that is still alive are marked as kept."""
        living = {number for number, storage in self._memory.values() if not storage.expired()}  # type: ignore[no-untyped-call]
        alive = {i for i, value in enumerate(self._values) if value.memory in living}
        calls = [call for call in self._calls if call is not None]
        sources = frozenset(range(len(self._values))) - self._made
        return Dataflow(self._values, calls, frozenset(alive | self._kept), sources)

    def _overwrite(self, tensors: tuple[torch.Tensor, ...]) -> None:
        for memory in {memory for memory in map(self._memory_of, tensors) if memory is not None}:
            self._writes[memory] += 1

    def _memory_of(self, t: torch.Tensor) -> int | None:
        dense = t._values() if t.is_sparse else t
        if unsupported_kind(dense) is not None:
            return None
        storage = dense.untyped_storage()
        if storage._cdata not in self._memory:
            self._memory[storage._cdata] = len(self._memory), StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        return self._memory[storage._cdata][0]

    def _number(self, t: Any) -> int | None:
        """Return the number of the value that a tensor holds now, or None if it has no storage to identify it."""
        if not isinstance(t, torch.Tensor):
            return None
        memory = self._memory_of(t)
        if memory is None:
            return None
        shape, stride = tuple(t.shape), () if t.is_sparse else t.stride()
        offset = 0 if t.is_sparse else t.storage_offset()
        key = (memory, self._writes[memory], offset, shape, stride, t.dtype, t.layout, t.is_conj(), t.is_neg())
        if key not in self._numbers:
            self._numbers[key] = len(self._values)
            self._values.append(ValueType(DTYPE_NAMES[t.dtype], shape, tuple(stride), memory))
        return self._numbers[key]


def _without_generator(value: Any) -> Any:
    return None if isinstance(value, torch.Generator) else value
