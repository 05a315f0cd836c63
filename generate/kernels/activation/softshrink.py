"""aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import rounded

OVERLOADS = ("aten::softshrink",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def softshrink(x, size):
    return tl.where(x > size, x - size, tl.where(x < -size, x + size, tl.where(x != x, x, 0.0)))


def wrapper(self, lambd=0.5, *, out=None):
    if lambd < 0:
        raise RuntimeError(f"lambd must be >= 0, got {lambd}")
    return elementwise(softshrink, self, numbers=(rounded(lambd, self.dtype),), out=out)
