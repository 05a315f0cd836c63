"""aten::angle(Tensor self) -> Tensor

0, or pi below 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::angle",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def angle(x):
    return tl.where(x != x, x, tl.where(x < 0, tl.zeros_like(x) + 3.141592653589793, 0.0))


def wrapper(self, *, out=None):
    return elementwise(angle, self, to_float=True, out=out)
