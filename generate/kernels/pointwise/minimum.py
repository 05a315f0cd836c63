"""aten::minimum(Tensor self, Tensor other) -> Tensor

If either operand is NaN, the result is NaN.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::minimum",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def minimum(x, y):
    return tl.where((x < y) | (x != x), x, y)


def wrapper(self, other, *, out=None):
    return elementwise(minimum, self, other, out=out)
