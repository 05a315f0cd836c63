"""Detect invalid results: not a plain tensor, overlapping elements, or memory shared with an earlier result."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from traces.overloads import UPDATED, kind, resolve, written

MAX_KEPT_BYTES = 64 << 20  # bytes of earlier results that are kept alive
MAX_SPARE_BYTES = 1 << 16  # bytes that a result's storage may have beyond twice the size of all tensors in the call
MAX_COUNTED = 1 << 20  # elements whose positions are compared one by one


def complaints(overload: str, arguments: Mapping[str, Any], result: Any) -> list[str]:
    """Return reasons why a result, or an argument after the call, is not a plain tensor with its own memory.

    The parent compares conj and neg bits if the overload is a view, because a view may set them. It also checks
    if a result should be sparse.
    """
    inputs = list(tensors(arguments))
    accepted = {name for t in inputs for name in _properties(t)}
    if kind(resolve(overload)) == "view":
        accepted |= {"its conj bit set", "its neg bit set"}
    messages = [f"argument {name} has {text}" for name, value in arguments.items() for text in _classes(value)]
    messages += [f"the result has {text}" for text in _classes(result)]
    messages += [f"the result has {text}" for t in tensors(result) for text in _properties(t) if text not in accepted]
    messages += [f"the result has {text}" for text in _shared(arguments, result)]
    messages += _oversized(arguments, result)
    messages += [f"an argument has {text}" for t in inputs for text in _properties(t) if text == _GRAD]
    return list(dict.fromkeys(messages))


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
    """Describe new results whose elements share memory; the next in-place operator would write them all."""
    with torch._C.DisableTorchFunctionSubclass():
        known = {t.untyped_storage().data_ptr() for t in strided(arguments)}
        new = [t for t in strided(result) if t.untyped_storage().data_ptr() not in known]
        return [
            f"elements that share memory: shape {list(t.shape)}, stride {list(t.stride())}" for t in new if _overlaps(t)
        ]


def _oversized(arguments: Mapping[str, Any], result: Any) -> list[str]:
    """Describe results that keep much more memory alive than the whole call needs."""
    with torch._C.DisableTorchFunctionSubclass():
        inputs, new = list(strided(arguments)), list(strided(result))
        most = MAX_SPARE_BYTES + 2 * sum(t.numel() * t.element_size() for t in (*inputs, *new))
        known = {t.untyped_storage().data_ptr() for t in inputs}
        storages = [(t.untyped_storage(), list(t.shape)) for t in new]
        oversized = [(s.nbytes(), shape) for s, shape in storages if s.data_ptr() not in known and s.nbytes() > most]
    return [
        f"the result has {size:,} bytes of memory for shape {shape}: allocate what it needs"
        for size, shape in oversized
    ]


class Counters:
    """Version counters that show how often protected arguments were written in place."""

    def __init__(self, arguments: Mapping[str, Any], protected: Mapping[int, str]) -> None:
        self._kept = [(t, t._version, protected.get(t.untyped_storage().data_ptr())) for t in strided(arguments)]

    def moved(self) -> list[str]:
        """Describe protected arguments that were written, even if their values are unchanged."""
        changed = {name for t, before, name in self._kept if name is not None and t._version != before}
        return [
            f"argument {name} was written during the call, and may be as it was: leave it alone" for name in changed
        ]


def _overlaps(tensor: torch.Tensor) -> bool:
    """Return True if two elements share one address."""
    extent, dense = 1, True
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1):
        if stride == 0:
            return tensor.numel() > 0
        dense &= stride >= extent
        extent += stride * (size - 1)
    if dense or not 0 < tensor.numel() <= MAX_COUNTED:
        return False
    offsets = np.zeros((), dtype=np.int64)
    for stride, size in zip(tensor.stride(), tensor.shape, strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * stride)
    return len(np.unique(offsets)) < offsets.size


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
    """Yield the tensors that have memory; for a sparse tensor, its indices and values."""
    for tensor in tensors(value):
        if tensor.layout is torch.sparse_coo:
            yield from (tensor._indices(), tensor._values())
        elif tensor.layout is torch.strided:
            yield tensor


class EarlierResults:
    """Results of earlier requests.

    They are kept alive, so that memory shared with one of them cannot be a coincidence.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[torch.UntypedStorage, int, int]] = deque()  # storages with their first byte and end
        self._bytes = 0
        self._starts: list[int] = []  # sorted starts of memory ranges that overlap no other range
        self._ends: dict[int, int] = {}
        self._shared: list[tuple[int, int]] = []  # ranges that overlap another one

    def shares_memory(self, result: Any, arguments: Collection[int]) -> bool:
        """Return True if `result` lies in memory of an earlier result, and keep it alive.

        Args:
            result: The current request's result.
            arguments: Buffers that do not count, by address.
        """
        with torch._C.DisableTorchFunctionSubclass():
            storages = [t.untyped_storage() for t in strided(result)]
        fresh = {s.data_ptr(): s for s in storages if s.nbytes() and s.data_ptr() not in arguments}
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
    """Return the arguments that the overload does not write, as names by storage address."""
    writable = written(resolve(overload)) | UPDATED
    names: dict[int, str] = {}
    unprotected: set[int] = set()  # storages that belong to an argument that is written
    for name, value in arguments.items():
        for tensor in strided(value):
            address = tensor.untyped_storage().data_ptr()
            names.setdefault(address, name)
            unprotected |= {address} if name in writable else set()
    return {address: name for address, name in names.items() if address not in unprotected}
