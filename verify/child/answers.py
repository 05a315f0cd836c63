"""What is odd about a wrapper's result: no plain tensor, elements that share memory, or memory of an earlier result."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from traces.overloads import UPDATED, kind, resolve, written

MAX_KEPT_BYTES = 64 << 20  # of earlier results
MAX_SPARE_BYTES = 1 << 16  # of a result, beyond what it and the arguments span
MAX_COUNTED = 1 << 20  # elements whose places are compared one by one


def complaints(overload: str, arguments: Mapping[str, Any], result: Any) -> list[str]:
    """Why the result, or an argument after the call, is no plain tensor of its own memory; a line each.

    Conj and neg bits are the parent's to compare where the overload is a view, which may set them. So is whether a
    result is sparse.
    """
    given = list(tensors(arguments))
    odd = {name for t in given for name in _properties(t)}
    if kind(resolve(overload)) == "view":
        odd |= {"its conj bit set", "its neg bit set"}
    found = [f"argument {name} has {text}" for name, value in arguments.items() for text in _classes(value)]
    found += [f"the result has {text}" for text in _classes(result)]
    found += [f"the result has {text}" for t in tensors(result) for text in _properties(t) if text not in odd]
    found += [f"the result has {text}" for text in _shared(arguments, result)]
    found += _oversized(arguments, result)
    found += [f"an argument has {text}" for t in given for text in _properties(t) if text == _GRAD]
    return list(dict.fromkeys(found))


_GRAD = "requires_grad set"


def _classes(value: Any) -> list[str]:
    return [f"class {type(t).__name__}" for t in (*tensors(value), *strided(value)) if type(t) is not torch.Tensor]


def _properties(tensor: torch.Tensor) -> list[str]:
    with torch._C.DisableTorchFunctionSubclass():
        checks = {
            f"device {tensor.device}": tensor.device.type == "meta",
            f"layout {tensor.layout}": tensor.layout not in (torch.strided, torch.sparse_coo),
            "a quantised dtype": tensor.is_quantized,
            "its conj bit set": tensor.is_conj(),
            "its neg bit set": tensor.is_neg(),
            _GRAD: tensor.requires_grad,
        }
    return [text for text, applies in checks.items() if applies]


def _shared(arguments: Mapping[str, Any], result: Any) -> list[str]:
    """Results whose elements share memory that is no argument's: the next operator in place would write them all."""
    with torch._C.DisableTorchFunctionSubclass():
        given = {t.untyped_storage().data_ptr() for t in strided(arguments)}
        new = [t for t in strided(result) if t.untyped_storage().data_ptr() not in given]
        return [
            f"elements that share memory: shape {list(t.shape)}, stride {list(t.stride())}" for t in new if _overlaps(t)
        ]


def _oversized(arguments: Mapping[str, Any], result: Any) -> list[str]:
    """Results that keep more memory alive than the whole call has to do with."""
    with torch._C.DisableTorchFunctionSubclass():
        given, new = list(strided(arguments)), list(strided(result))
        most = MAX_SPARE_BYTES + 2 * sum(t.numel() * t.element_size() for t in (*given, *new))
        known = {t.untyped_storage().data_ptr() for t in given}
        storages = [(t.untyped_storage(), list(t.shape)) for t in new]
        held = [(s.nbytes(), shape) for s, shape in storages if s.data_ptr() not in known and s.nbytes() > most]
    return [
        f"the result has {size:,} bytes of memory for shape {shape}: allocate what it needs" for size, shape in held
    ]


class Counters:
    """Of the arguments that the overload leaves alone: how often each was written by operators in place."""

    def __init__(self, arguments: Mapping[str, Any], protected: Mapping[int, str]) -> None:
        self._kept = [(t, t._version, protected.get(t.untyped_storage().data_ptr())) for t in strided(arguments)]

    def moved(self) -> list[str]:
        """Why an argument was not left alone, though it may hold what it held."""
        changed = {name for t, before, name in self._kept if name is not None and t._version != before}
        return [
            f"argument {name} was written during the call, and may be as it was: leave it alone" for name in changed
        ]


def _overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements lie at one place."""
    extent, dense = 1, True
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1):
        if stride == 0:
            return tensor.numel() > 0
        dense &= stride >= extent
        extent += stride * (size - 1)
    if dense or not 0 < tensor.numel() <= MAX_COUNTED:
        return False
    places = np.zeros((), dtype=np.int64)
    for stride, size in zip(tensor.stride(), tensor.shape, strict=True):
        places = np.add.outer(places, np.arange(size) * stride)
    return len(np.unique(places)) < places.size


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)


def strided(value: Any) -> Iterator[torch.Tensor]:
    """The tensors that have memory: of a sparse one its indices and values."""
    for tensor in tensors(value):
        if tensor.layout is torch.sparse_coo:
            yield from (tensor._indices(), tensor._values())
        elif tensor.layout is torch.strided:
            yield tensor


class EarlierResults:
    """Results of earlier requests, kept alive so that memory in common with one is no accident."""

    def __init__(self) -> None:
        self._kept: deque[tuple[torch.UntypedStorage, int, int]] = deque()  # with the first byte, and what ends it
        self._bytes = 0
        self._starts: list[int] = []  # in order, of memory that no other of them has a part of
        self._ends: dict[int, int] = {}
        self._shared: list[tuple[int, int]] = []  # the others

    def shares_memory(self, result: Any, arguments: Collection[int]) -> bool:
        """Whether `result` lies in memory of an earlier one; it is kept. arguments: buffers that do not count."""
        with torch._C.DisableTorchFunctionSubclass():
            found = [t.untyped_storage() for t in strided(result)]
        fresh = {s.data_ptr(): s for s in found if s.nbytes() and s.data_ptr() not in arguments}
        shared = any(self._meets(start, start + s.nbytes()) for start, s in fresh.items())
        for start, storage in fresh.items():
            self._keep(start, storage)
        while self._bytes > MAX_KEPT_BYTES:
            self._forget(*self._kept.popleft())
        return shared

    def _meets(self, low: int, high: int) -> bool:
        before = bisect_left(self._starts, high)
        last = before and self._ends[self._starts[before - 1]] > low
        return bool(last) or any(start < high and low < end for start, end in self._shared)

    def _keep(self, start: int, storage: torch.UntypedStorage) -> None:
        end = start + storage.nbytes()
        self._kept.append((storage, start, end))
        self._bytes += end - start
        if self._meets(start, end):
            self._shared.append((start, end))
        else:
            insort(self._starts, start)
            self._ends[start] = end

    def _forget(self, _: torch.UntypedStorage, start: int, end: int) -> None:
        self._bytes -= end - start
        if (start, end) in self._shared:
            self._shared.remove((start, end))
        else:
            self._starts.remove(start)
            del self._ends[start]


def protected(overload: str, arguments: dict[str, Any]) -> dict[int, str]:
    """Names of the arguments that the overload does not write, by the addresses of their storages."""
    may = written(resolve(overload)) | UPDATED
    found: dict[int, str] = {}
    free: set[int] = set()  # of an argument that is written
    for name, value in arguments.items():
        for tensor in strided(value):
            address = tensor.untyped_storage().data_ptr()
            found.setdefault(address, name)
            free |= {address} if name in may else set()
    return {address: name for address, name in found.items() if address not in free}
