"""aten::hardswish(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::hardswish",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def hardswish(x):
    y = tl.where(x + 3 < 0, 0.0, x + 3)
    return x * tl.where(y > 6, 6.0, y) / 6


def wrapper(self, *, out=None):
    return elementwise(hardswish, self, out=out)
