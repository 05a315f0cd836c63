"""aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) ->
    Tensor

The result starts as a copy of the memory that covers both the tensor and the destination of `src`, because
the destination may lie beside the tensor's own elements. An expanded tensor starts as a contiguous copy.
"""

import torch
from blocks.creation import fill

OVERLOADS = ("aten::as_strided_scatter",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def overlaps_itself(x):
    return any([n > 1 and s == 0 for n, s in zip(x.shape, x.stride(), strict=True)])


def last_of(x):
    """Return the last element's position in the storage."""
    return x.storage_offset() + sum([(n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)])


def as_in(memory, view):
    """Return a view of `memory` with the same geometry as `view`."""
    return memory.as_strided(view.shape, view.stride(), view.storage_offset())


def wrapper(self, src, size, stride, storage_offset=None):
    if overlaps_itself(self):
        self = fill(torch.empty_like(self), self)
    destination = self.as_strided(size, stride, storage_offset)
    if destination.shape != src.shape:
        raise RuntimeError(f"expected a source {tuple(destination.shape)}, got {tuple(src.shape)}")
    if overlaps_itself(destination):
        raise RuntimeError(f"size {tuple(size)} with stride {tuple(stride)} overlaps itself")
    parts = [t for t in (self, destination) if t.numel()]
    first = min([t.storage_offset() for t in parts], default=0)
    n = max([last_of(t) + 1 - first for t in parts], default=0)
    memory = torch.empty(first + n, dtype=self.dtype, device=self.device)  # the result keeps the storage offset
    fill(memory.narrow(0, first, n), self.as_strided((n,), (1,), first))
    fill(as_in(memory, destination), src)
    return as_in(memory, self)
