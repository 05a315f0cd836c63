"""Memory that a call writes and that another of its tensors shares.

ATen refuses such calls where the result would depend on the order of the elements: "unsupported operation: some
elements of the input tensor and the written-to tensor refer to a single memory location". Kernels run their programs in
parallel, so for them it would be a data race. The rules are those of ATen/MemoryOverlap.cpp, except for tensors on
which ATen gives up ("too hard"), such as columns of one matrix: these are compared exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from traces.overloads import written


@dataclass(frozen=True)
class Footprint:
    """How much memory the tensors of a call take up, whatever their addresses.

    Attributes:
        spans: bytes from the first element of each tensor to the end of its last, 0 if it is empty.
        written: whether the call writes the tensor.
        alike: for each tensor, the position of the first one with the same shape, strides and dtype.
        pointwise: whether an element of the result depends on the elements at its own place alone, so that a tensor may
            be read and written by one call.
    """

    spans: tuple[int, ...]
    written: tuple[bool, ...]
    alike: tuple[int, ...]
    pointwise: bool

    def may_clash(self, pointers: Sequence[int]) -> bool:
        """Return True if the span of a written tensor meets that of another tensor at these addresses."""
        spans = [
            (pointer, alike, not is_written, pointer + span)
            for pointer, span, is_written, alike in zip(pointers, self.spans, self.written, self.alike, strict=True)
            if span
        ]
        spans.sort()
        end = end_written = 0  # of the spans before, which begin no later
        previous = (-1, -1)
        for pointer, alike, is_read, stop in spans:
            again = self.pointwise and is_read and previous == (pointer, alike)
            if not again and (pointer < end_written or (not is_read and pointer < end)):
                return True
            end, previous = max(end, stop), (pointer, alike)
            end_written = end_written if is_read else max(end_written, stop)
        return False


def footprint_of(
    op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[torch.Tensor], Footprint]:
    """Return the strided tensors of a call, in the order of `shortcuts.looked_at`, and their footprint."""
    tensors, is_written = list[torch.Tensor](), list[bool]()
    names = [a.name for a in op._schema.arguments]
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        for t in _tensors(value):
            tensors.append(t)
            is_written.append(name in written(op))
    first: dict[Any, int] = {}
    alike = tuple([first.setdefault((t.shape, t.stride(), t.dtype), i) for i, t in enumerate(tensors)])
    spans = tuple(map(_span, tensors))
    return tensors, Footprint(spans, tuple(is_written), alike, torch.Tag.pointwise in op.tags)


def overlaps(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return True if the call writes an element twice, or one that another of its tensors holds elsewhere."""
    if not written(op):
        return False
    tensors, footprint = footprint_of(op, args, kwargs)
    if any(is_written and _repeats(t) for t, is_written in zip(tensors, footprint.written, strict=True)):
        return True
    if not footprint.may_clash([t.data_ptr() for t in tensors]):
        return False
    numbered = list(enumerate(tensors))
    return any(
        _meet(a, b) and not (footprint.pointwise and not footprint.written[j] and _same(a, b))
        for i, a in numbered
        if footprint.written[i]
        for j, b in numbered
        if i != j
    )


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.sparse_coo:
            yield from (value._indices(), value._values())
        elif value.layout is torch.strided:
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _span(t: torch.Tensor) -> int:
    if not t.numel():
        return 0
    return (sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1) * t.element_size()


def _repeats(t: torch.Tensor) -> bool:
    """Return True if two elements of a tensor may be in one place."""
    return bool(t.numel()) and not _is_nested((s, n) for n, s in zip(t.shape, t.stride(), strict=True) if n > 1)


def _is_nested(dimensions: Iterable[tuple[int, int]]) -> bool:
    """Return True if no two elements meet: each stride of these (stride, size) is beyond what smaller ones reach."""
    reach = 0
    for stride, size in sorted(dimensions):
        if stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.data_ptr() == b.data_ptr() and (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


def _meet(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return True if two tensors may share a byte: exactly if both have the same strides, else by their spans."""
    low, high = sorted((t.data_ptr(), t.data_ptr() + _span(t)) for t in (a, b))
    if not (a.numel() and b.numel()) or high[0] >= low[1]:
        return False
    if a.dtype != b.dtype or a.stride() != b.stride():
        return True
    sizes = sorted(zip(a.stride(), a.shape, b.shape, strict=True), reverse=True)
    distance, rest = divmod(b.data_ptr() - a.data_ptr(), a.element_size())
    if rest or not _is_nested((s, max(n, m)) for s, n, m in sizes if n > 1 or m > 1):
        return True
    return _reaches(distance, [(s, n - 1, m - 1) for s, n, m in sizes if n > 1 or m > 1])


def _reaches(distance: int, dimensions: list[tuple[int, int, int]]) -> bool:
    """Return True if a sum of strides is a distance: each as often as `first` times at most, or `-second` at least."""
    if not dimensions:
        return distance == 0
    (stride, first, second), *smaller = dimensions
    return any(
        -second <= times <= first and _reaches(distance - times * stride, smaller)
        for times in {distance // stride, -(-distance // stride)}
    )
