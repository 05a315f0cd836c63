"""aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor
aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor

self + weight * (end - self), taken from the nearer end (|weight| < 0.5 or not) so that weight = 1 gives end exactly.
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
