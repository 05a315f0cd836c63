"""Find memory that a call writes and that another of its tensors shares.

ATen refuses a call if the result would depend on the order of the elements: "unsupported operation: some elements of
the input tensor and the written-to tensor refer to a single memory location". Kernels run their programs in parallel,
so for them it would be a data race. The rules are those of ATen/MemoryOverlap.cpp. ATen gives up on some tensors
("too hard"), such as columns of one matrix; this module compares these exactly.
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
    """The amount of memory that a call's tensors occupy, independent of their addresses.

    Attributes:
        spans: Bytes from the first element of each tensor to the end of its last, 0 if it is empty.
        written: True for each tensor that the call writes.
        layouts: For each tensor, the position of the first one with the same shape, strides and dtype.
        pointwise: True if a result element depends only on the input elements at its own index. One call may then read
            and write the same tensor.
    """

    spans: tuple[int, ...]
    written: tuple[bool, ...]
    layouts: tuple[int, ...]
    pointwise: bool

    def may_clash(self, pointers: Sequence[int]) -> bool:
        """Return True if a written tensor's span meets another tensor's span at these addresses."""
        spans = [
            (pointer, layout, not is_written, pointer + span)
            for pointer, span, is_written, layout in zip(pointers, self.spans, self.written, self.layouts, strict=True)
            if span
        ]
        # Sweep by address. At one address a write sorts before a read of the same tensor, which may then follow it.
        spans.sort()
        end = end_written = 0  # ends of the preceding spans, which are sorted by their first byte
        previous = (-1, -1)
        for pointer, layout, is_read, stop in spans:
            is_same_tensor = self.pointwise and is_read and previous == (pointer, layout)
            if not is_same_tensor and (pointer < end_written or (not is_read and pointer < end)):
                return True
            end, previous = max(end, stop), (pointer, layout)
            end_written = end_written if is_read else max(end_written, stop)
        return False


def footprint_of(
    op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[torch.Tensor], Footprint]:
    """Return a call's strided tensors, in the order of `shortcuts.looked_at`, and their footprint."""
    tensors, is_written = list[torch.Tensor](), list[bool]()
    names = [a.name for a in op._schema.arguments]
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        for t in _tensors(value):
            tensors.append(t)
            is_written.append(name in written(op))
    first: dict[Any, int] = {}
    layouts = tuple([first.setdefault((t.shape, t.stride(), t.dtype), i) for i, t in enumerate(tensors)])
    spans = tuple(map(_span, tensors))
    return tensors, Footprint(spans, tuple(is_written), layouts, torch.Tag.pointwise in op.tags)


def overlaps(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return True if the call writes an element twice, or an element that another tensor holds at another index."""
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
    """Yield the strided tensors in a value; a COO tensor yields its indices and values."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.sparse_coo:
            yield from (value._indices(), value._values())
        elif value.layout is torch.strided:
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)


def _span(t: torch.Tensor) -> int:
    """Return the bytes from the first element to the end of the last."""
    if not t.numel():
        return 0
    return (sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1) * t.element_size()


def _repeats(t: torch.Tensor) -> bool:
    """Return True if two elements of a tensor may share an address."""
    return bool(t.numel()) and not _is_nested((s, n) for n, s in zip(t.shape, t.stride(), strict=True) if n > 1)


def _is_nested(dimensions: Iterable[tuple[int, int]]) -> bool:
    """Return True if no two elements can meet: each stride exceeds the reach of all smaller (stride, size) pairs."""
    reach = 0
    for stride, size in sorted(dimensions):
        if stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return True if two tensors are the same view of the same memory."""
    return a.data_ptr() == b.data_ptr() and (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)


def _meet(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return True if two tensors may share a byte: exact for equal strides and dtype, by spans otherwise."""
    low, high = sorted((t.data_ptr(), t.data_ptr() + _span(t)) for t in (a, b))
    if not (a.numel() and b.numel()) or high[0] >= low[1]:
        return False
    if a.dtype != b.dtype or a.stride() != b.stride():
        return True
    sizes = sorted(zip(a.stride(), a.shape, b.shape, strict=True), reverse=True)
    distance, remainder = divmod(b.data_ptr() - a.data_ptr(), a.element_size())
    if remainder or not _is_nested((s, max(n, m)) for s, n, m in sizes if n > 1 or m > 1):
        return True
    return _reaches(distance, [(s, n - 1, m - 1) for s, n, m in sizes if n > 1 or m > 1])


def _reaches(distance: int, dimensions: list[tuple[int, int, int]]) -> bool:
    """Return True if a sum of stride multiples equals `distance`; each multiple lies in [-second, first]."""
    if not dimensions:
        return distance == 0
    # The strides are nested, so all smaller ones together reach less than one stride: only the two multiples next to
    # the distance are candidates.
    (stride, first, second), *smaller = dimensions
    return any(
        -second <= times <= first and _reaches(distance - times * stride, smaller)
        for times in {distance // stride, -(-distance // stride)}
    )
