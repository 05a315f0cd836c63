"""aten::hypot(Tensor self, Tensor other) -> Tensor

- In fp64, the result is large * sqrt(1 + r^2), with r the ratio between the smaller and the larger magnitude.
- In fp32, both operands are divided by a power of two near the larger magnitude, squared and added. The root
  is multiplied by that power.

If an operand is infinite, the result is infinity, even if the other one is NaN.
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
    if x.dtype.is_fp64():
        ratio = tl.minimum(a, b) / tl.where(large == 0, 1.0, large)
        r = large * tl.sqrt(1 + ratio * ratio)
        r = tl.where((x != x) | (y != y), float("nan"), r)
    else:
        near = tl.minimum(tl.maximum(large, 7.52316384526264e-37), 8.507059173023462e37)  # 2^-120, 2^126
        power = near.to(tl.int32, bitcast=True) & 0x7F800000
        inverse = (0x7F000000 - power).to(tl.float32, bitcast=True)
        u, v = x * inverse, y * inverse
        r = tl.sqrt(u * u + v * v) * power.to(tl.float32, bitcast=True)
    return tl.where((a == float("inf")) | (b == float("inf")), float("inf"), r)


def wrapper(self, other, *, out=None):
    return elementwise(hypot, self, other, out=out)
