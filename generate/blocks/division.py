"""Division whose quotient is a whole number."""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.functions import exact_remainder, near_quotient, toward_zero, whole_quotient, with_sign
from blocks.types import common_dtype


@triton.jit
def long_floor_quotient(x, y):
    r = exact_remainder(x, y)
    q = divide(x - r, y)
    q = tl.where((r != 0) & ((r < 0) != (y < 0)), q - 1, q)
    whole = tl.floor(q)
    whole = tl.where(q - whole > 0.5, whole + 1, whole)
    rough = x / y  # of which the sign of a zero and infinities are as they should be
    whole = tl.where(q == 0, with_sign(tl.zeros_like(x + y), rough), whole)
    return tl.where(y == 0, rough, whole)


@triton.jit
def floor_quotient_of_integers(x, y):
    safe = tl.where(y == 0, 1, y)
    q, r = x // safe, x % safe
    q = tl.where((r != 0) & ((r < 0) != (y < 0)), q - 1, q)
    return tl.where(y == 0, -1, q)


@triton.jit
def truncated_quotient(x, y):
    return toward_zero(divide(x, y))


@triton.jit
def truncated_quotient_of_integers(x, y):
    return tl.where(y == 0, -1, x // tl.where(y == 0, 1, y))


def divide_whole(self, other, rounding_mode, out=None):
    """The quotient, rounded down ("floor") or toward zero ("trunc"); an integer divided by 0 gives -1."""
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"rounding_mode is None, 'trunc' or 'floor', not '{rounding_mode}'")
    floating = common_dtype(self, other).is_floating_point
    if rounding_mode == "floor":
        function = floor_quotient if floating else floor_quotient_of_integers
    else:
        function = truncated_quotient if floating else truncated_quotient_of_integers
    return elementwise(function, self, other, out=out)


@triton.jit
def short_floor_quotient(x, y):
    """In fp32, and the size of the quotient, which has to be less than 2^18: 0 for a divisor of 0, by which all but 0
    is infinite. The nearest whole number, or one less or more, by the sign of what it leaves."""
    a, b = tl.abs(x), tl.abs(y)
    q, whole, left = near_quotient(a, b)
    left = tl.where(b == float("inf"), a, left)
    down, up = tl.where(left < 0, whole - 1, whole), tl.where(left > 0, whole + 1, whole)
    apart = (x.to(tl.int32, bitcast=True) ^ y.to(tl.int32, bitcast=True)) < 0
    none = b == 0
    most = a * float("inf")
    r = tl.where(apart, tl.where(none, most, up) * -1.0, tl.where(none, most, down))
    return r, tl.where(none, 0.0, q)


@triton.jit
def floor_quotient_fp64(x, y):
    """At once where the quotient has 20 bits, or y is 0."""
    a, b = tl.abs(x), tl.abs(y)
    none = (b == 0) & (a < float("inf"))
    short = none | ((a < b * 1048576.0) & (b < float("inf")))  # nor is it of a NaN
    whole = whole_quotient(a, b)
    down = tl.where(tl.fma(whole * -1.0, b, a) > 0, whole + 1, whole) * -1.0
    whole = tl.where((x < 0) != (y < 0), down, whole)
    zero = x * 0.0 * y  # of the quotient's sign
    whole = tl.where(none, with_sign(a / b, zero), tl.where(whole == 0, zero, whole))
    if tl.max(tl.where(short, 0, 1), 0) > 0:
        whole = tl.where(short, whole, long_floor_quotient(x, y))
    return whole


@triton.jit
def floor_quotient(x, y):
    """At once where all quotients are short; else by `long_floor_quotient`."""
    if x.dtype.is_fp64():
        r = floor_quotient_fp64(x, y)
    else:
        r, q = short_floor_quotient(x, y)
        if tl.max(q.to(tl.int32, bitcast=True), 0) >= 0x48800000:  # 2^18, or NaN
            r = long_floor_quotient(x, y)
    return r
