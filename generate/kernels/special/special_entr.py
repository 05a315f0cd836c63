"""aten::special_entr(Tensor self) -> Tensor

Computes -x * log(x). The result is 0 at x = 0, and minus infinity for x < 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::special_entr",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def entr(x):
    r = -x * tl.log(tl.where(x > 0, x, 1.0))
    return tl.where(x != x, x, tl.where(x > 0, r, tl.where(x == 0, 0.0, float("-inf"))))


def wrapper(self, *, out=None):
    return elementwise(entr, self, to_float=True, out=out)
