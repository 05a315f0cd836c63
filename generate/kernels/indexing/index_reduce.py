"""aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) ->
    Tensor

Reduces with atomics, in 32 bits for narrower dtypes.
"""

import torch
from blocks.accumulation import reduce_along

OVERLOADS = ("aten::index_reduce",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, source, reduce, *, include_self=True, out=None):
    if index.dtype not in (torch.int32, torch.int64) or source.dtype != self.dtype:
        raise RuntimeError(
            f"expected an int32 or int64 index and a {self.dtype} source, got {index.dtype} and {source.dtype}"
        )
    if reduce not in ("prod", "mean", "amax", "amin") or index.dim() > 1:
        raise RuntimeError(
            f"expected prod, mean, amax or amin and an index vector, got {reduce} and {index.dim()} dimensions"
        )
    d = dim % max(self.dim(), 1)
    expected = (*self.shape[:d], index.numel(), *self.shape[d + 1 :]) if self.dim() else source.shape
    if source.shape != expected or source.numel() != index.numel() and not self.dim():
        raise RuntimeError(f"expected a source {tuple(expected)}, got {tuple(source.shape)}")
    index = index.view([-1 if k == d else 1 for k in range(source.dim())]).expand(source.shape)
    return reduce_along(self, d, index, source, reduce, include_self, out)
