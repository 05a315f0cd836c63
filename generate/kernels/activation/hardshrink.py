"""aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import rounded

OVERLOADS = ("aten::hardshrink",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def hardshrink(x, size):
    return tl.where((x >= -size) & (x <= size), 0.0, x)


def wrapper(self, lambd=0.5, *, out=None):
    return elementwise(hardshrink, self, numbers=(rounded(lambd, self.dtype),), out=out)
