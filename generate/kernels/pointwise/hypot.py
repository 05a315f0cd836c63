"""aten::hypot(Tensor self, Tensor other) -> Tensor

The larger times sqrt(1 + r^2), r the ratio of the smaller to it; an infinity wins over NaN.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::hypot",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def hypot(x, y):
    a, b = tl.abs(x), tl.abs(y)
    large = tl.maximum(a, b)
    ratio = tl.minimum(a, b) / tl.where(large == 0, 1.0, large)
    r = large * tl.sqrt(1 + ratio * ratio)
    r = tl.where((x != x) | (y != y), float("nan"), r)
    return tl.where((a == float("inf")) | (b == float("inf")), float("inf"), r)


def wrapper(self, other, *, out=None):
    return elementwise(hypot, self, other, out=out)
