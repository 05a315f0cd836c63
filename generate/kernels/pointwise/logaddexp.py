"""aten::logaddexp(Tensor self, Tensor other) -> Tensor

Computes max(x, y) + log(1 + e^-|x - y|).
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p

OVERLOADS = ("aten::logaddexp",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def logaddexp(x, y):
    large = tl.where((x > y) | (x != x), x, y)
    r = large + log1p(tl.exp(-tl.abs(x - y)))
    return tl.where(x == y, x + 0.6931471805599453, r)


def wrapper(self, other, *, out=None):
    return elementwise(logaddexp, self, other, out=out)
