"""aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) ->
    Tensor

Reduces with atomics, in 32 bits for narrower dtypes.
"""

import torch
from blocks.accumulation import reduce_along

OVERLOADS = ("aten::scatter_reduce.two",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, src, reduce, *, include_self=True, out=None):
    if reduce == "mean" and self.dtype == torch.bool:
        raise RuntimeError("scatter_reduce does not support the mean for bool")
    return reduce_along(self, dim, index, src, reduce, include_self, out)
