"""aten::special_ndtri(Tensor self) -> Tensor

Computes the inverse of the standard normal distribution function: the x with P(X <= x) = p.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.error_functions import inverse_erf, inverse_erf_by_steps

OVERLOADS = ("aten::special_ndtri",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def ndtri(p):
    rest = 2 * tl.where(p < 0.5, p, 1 - p)
    y = inverse_erf(1 - rest, rest)
    if p.dtype.is_fp32():
        tail = (rest > 0) & (rest < 6e-8)
        if tl.max(tail.to(tl.int32), 0) > 0:
            y = tl.where(tail, inverse_erf_by_steps(1 - rest, rest), y)
    return 1.4142135623730951 * tl.where(p < 0.5, y * -1.0, y)


def wrapper(self, *, out=None):
    return elementwise(ndtri, self, to_float=True, out=out)
