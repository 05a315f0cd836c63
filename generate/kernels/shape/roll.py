"""aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor

Without dims, the tensor is rolled as if it were flat.
"""

import torch
from blocks.copies import copied
from blocks.joining import common_format
from blocks.regions import arranged

OVERLOADS = ("aten::roll",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, shifts, dims=()):
    if not self.numel():
        return torch.empty_like(self)  # as in ATen, which ignores shifts and dims here
    if not dims and len(shifts) == 1:
        x = self if self.is_contiguous() else copied(self)
        out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        arranged(x.view(-1), out.view(-1), [shifts[0] % max(x.numel(), 1)], wrap=True)
        return out
    if len(shifts) != len(dims) or not dims:
        raise RuntimeError(f"shifts {list(shifts)} do not match dims {list(dims)}")
    starts = [0] * self.dim()
    for shift, dim in zip(shifts, dims, strict=True):
        starts[dim] = (starts[dim] + shift) % max(self.shape[dim], 1)
    moved = all([shift % max(self.shape[dim], 1) for shift, dim in zip(shifts, dims, strict=True)])
    memory_format = common_format([self]) if moved else torch.contiguous_format
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device, memory_format=memory_format)
    return arranged(self, out, starts, wrap=True)
