"""aten::logaddexp2(Tensor self, Tensor other) -> Tensor

Computes max(x, y) + log2(1 + 2^-|x - y|).
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p

OVERLOADS = ("aten::logaddexp2",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def logaddexp2(x, y):
    large = tl.where((x > y) | (x != x), x, y)
    r = large + log1p(tl.exp2(-tl.abs(x - y))) * 1.4426950408889634
    return tl.where(x == y, x + 1, r)


def wrapper(self, other, *, out=None):
    return elementwise(logaddexp2, self, other, out=out)
