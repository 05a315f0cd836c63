"""aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor
aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor
aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor

The result has the sign of the divisor. An integer divided by 0 returns 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import exact_remainder, long_rest, short_rest
from blocks.types import common_dtype

OVERLOADS = ("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def signed_as(size, x):
    """Return a non-negative fp32 number with the sign of x."""
    return (size.to(tl.int32, bitcast=True) | (x.to(tl.int32, bitcast=True) & -2147483648)).to(tl.float32, bitcast=True)


@triton.jit
def short_remainder(x, y):
    """Return the fp32 remainder and the quotient's magnitude, which must be less than 2^18."""
    rest, q = short_rest(tl.abs(x), tl.abs(y))
    r = signed_as(rest, x)
    turned = (r.to(tl.int32, bitcast=True) ^ (y.to(tl.int32, bitcast=True) & -2147483648)).to(tl.float32, bitcast=True)
    return tl.where(turned < 0, r + y, r), q


@triton.jit
def with_sign_of_divisor(r, y):
    return tl.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)


@triton.jit
def long_remainder(x, y):
    """Return the fp32 remainder by long division."""
    a, b = tl.abs(x) + tl.zeros_like(y), tl.abs(y) + tl.zeros_like(x)
    r = long_rest(tl.where((a < float("inf")) & (b > 0), a, float("nan")), b)
    return with_sign_of_divisor(signed_as(r, x), y)


@triton.jit
def remainder(x, y):
    """Return the remainder, in one step if all quotients in the block are less than 2^18.

    NaN or infinite x returns NaN on either path.
    """
    if x.dtype.is_fp64():
        r = with_sign_of_divisor(exact_remainder(x, y), y)
    else:
        r, q = short_remainder(x, y)
        if tl.max(q.to(tl.int32, bitcast=True), 0) >= 0x48800000:  # 2^18
            r = long_remainder(x, y)
    return r


@triton.jit
def remainder_of_integers(x, y):
    r = tl.where((y == 0) | (y == -1), 0, x % tl.where((y == 0) | (y == -1), 1, y))
    return tl.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)


def wrapper(self, other, *, out=None):
    function = remainder if common_dtype(self, other).is_floating_point else remainder_of_integers
    return elementwise(function, self, other, out=out)
