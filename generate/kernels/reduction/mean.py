"""aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor
aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
"""

import triton
from blocks.complex_functions import complex_sum
from blocks.reduction import reduce

OVERLOADS = ("aten::mean", "aten::mean.dim")
DTYPES = ("bfloat16", "complex64", "float16", "float32", "float64")


@triton.jit
def divided(total, n):
    return total / n


def wrapper(self, dim=None, keepdim=False, *, dtype=None):
    if self.is_complex() or (dtype is not None and dtype.is_complex):
        return complex_sum(self, dim, keepdim, dtype or self.dtype, divided)
    return reduce("sum", [self], dim, keepdim, dtype=dtype or self.dtype, finish=divided)
