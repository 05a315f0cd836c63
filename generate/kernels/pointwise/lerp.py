"""aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor

Computes self + weight * (end - self), starting from the nearer end: self if |weight| < 0.5, else end. So
weight = 1 returns `end` exactly.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::lerp.Scalar", "aten::lerp.Tensor")
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def lerp(x, y, w):
    return tl.where(tl.abs(w) < 0.5, x + w * (y - x), y - (y - x) * (1 - w))


def wrapper(self, end, weight, *, out=None):
    return elementwise(lerp, self, end, weight, out=out)
