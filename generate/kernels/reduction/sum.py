"""aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
"""

import torch
from blocks.complex_functions import complex_sum
from blocks.reduction import reduce

OVERLOADS = ("aten::sum", "aten::sum.dim_IntList")
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, dim=None, keepdim=False, *, dtype=None):
    if self.is_complex() or (dtype is not None and dtype.is_complex):
        return complex_sum(self, dim, keepdim, dtype or self.dtype)
    dtype = dtype or (self.dtype if self.is_floating_point() else torch.int64)
    return reduce("sum", [self], dim, keepdim, dtype=dtype)
