"""aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor
aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor

Values are added or multiplied with atomics, in 32 bits for narrower dtypes.
"""

import torch
from blocks.accumulation import reduce_along
from blocks.creation import fill
from blocks.number_range import without_overflow

OVERLOADS = ("aten::scatter.reduce", "aten::scatter.value_reduce")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, src, *, reduce, out=None):
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"reduce must be add or multiply, got {reduce}")
    if not isinstance(src, torch.Tensor):
        without_overflow(self.dtype, src)
        src = fill(torch.empty((), dtype=self.dtype, device=self.device), src)
    return reduce_along(self, dim, index, src, "sum" if reduce == "add" else "prod", True, out)
