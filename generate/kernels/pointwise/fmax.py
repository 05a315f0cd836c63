"""aten::fmax(Tensor self, Tensor other) -> Tensor

The result is NaN only if both operands are NaN.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::fmax",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def fmax(x, y):
    return tl.where((x > y) | (y != y), x, y)


def wrapper(self, other, *, out=None):
    return elementwise(fmax, self, other, out=out)
