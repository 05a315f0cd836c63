"""aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor

A row that is all -inf, before the conversion to dtype, becomes zeros.
"""

import triton
import triton.language as tl
from blocks.rows import map_rows

OVERLOADS = ("aten::_safe_softmax",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def counted(raw, x):
    return x, tl.full(x.shape, 1, x.dtype), raw != float("-inf")


@triton.jit
def safe_softmax(raw, x, peak, total, alive):
    return tl.where(alive, tl.exp(x - peak) / total, 0)


def wrapper(self, dim, dtype=None):
    dtype = dtype or self.dtype
    options = {"kind": "safe_softmax", "map": counted, "commons": [self.dtype, dtype]}
    return map_rows(safe_softmax, [self, self], dim, dtype=dtype, **options)
