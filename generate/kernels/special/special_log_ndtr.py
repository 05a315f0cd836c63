"""aten::special_log_ndtr(Tensor self) -> Tensor

Computes the logarithm of the standard normal distribution function at x.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.error_functions import complementary_erf, scaled_erfc
from blocks.functions import log1p

OVERLOADS = ("aten::special_log_ndtr",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def log_ndtr(x):
    t = x * 0.7071067811865476
    low = tl.log(0.5 * scaled_erfc(tl.abs(t))) - t * t
    high = log1p(-0.5 * complementary_erf(t))
    return tl.where(x < -1, low, high)


def wrapper(self, *, out=None):
    return elementwise(log_ndtr, self, to_float=True, out=out)
