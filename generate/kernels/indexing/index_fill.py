"""aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor
"""

import torch
from blocks.creation import fill
from blocks.indexing import put
from blocks.number_range import without_overflow

OVERLOADS = ("aten::index_fill.int_Scalar", "aten::index_fill.int_Tensor")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, value, *, out=None):
    if index.dtype != torch.int64:
        raise RuntimeError(f"index must be int64, got {index.dtype}")
    if isinstance(value, torch.Tensor) and value.dim():
        raise RuntimeError(f"value must have no dimensions, got {value.dim()}")
    without_overflow(self.dtype, value)
    value = fill(torch.empty((), dtype=self.dtype, device=self.device), value)
    return put(self, [None] * (dim % max(self.dim(), 1)) + [index.view(-1)], value, False, out=out)
