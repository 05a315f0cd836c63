"""aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

NaN counts as 0.
"""

import torch
import triton
import triton.language as tl
from blocks.reduction import reduce

OVERLOADS = ("aten::nansum",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def zero_if_nan(x):
    return tl.where(x != x, tl.zeros_like(x), x)


def wrapper(self, dim=None, keepdim=False, *, dtype=None):
    dtype = dtype or (self.dtype if self.is_floating_point() else torch.int64)
    return reduce("sum", [self], dim, keepdim, dtype=dtype, map=zero_if_nan)
