"""Division with a whole-number quotient, rounded down or toward zero."""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.functions import exact_remainder, near_quotient, toward_zero, whole_quotient, with_sign
from blocks.types import common_dtype


@triton.jit
def long_floor_quotient(x, y):
    """Return floor(x / y) for quotients of any size, from the exact remainder."""
    r = exact_remainder(x, y)
    q = divide(x - r, y)
    q = tl.where((r != 0) & ((r < 0) != (y < 0)), q - 1, q)
    whole = tl.floor(q)
    whole = tl.where(q - whole > 0.5, whole + 1, whole)
    rough = x / y  # provides the sign of a zero, and infinities
    whole = tl.where(q == 0, with_sign(tl.zeros_like(x + y), rough), whole)
    return tl.where(y == 0, rough, whole)


@triton.jit
def floor_quotient_of_integers(x, y):
    """Return floor(x / y) for integers, and -1 if y is 0."""
    safe = tl.where(y == 0, 1, y)
    q, r = x // safe, x % safe
    q = tl.where((r != 0) & ((r < 0) != (y < 0)), q - 1, q)
    return tl.where(y == 0, -1, q)


@triton.jit
def truncated_quotient(x, y):
    """Return x / y rounded toward zero."""
    return toward_zero(divide(x, y))


@triton.jit
def truncated_quotient_of_integers(x, y):
    """Return x / y rounded toward zero for integers, and -1 if y is 0."""
    return tl.where(y == 0, -1, x // tl.where(y == 0, 1, y))


def divide_whole(self, other, rounding_mode, out=None):
    """Return the quotient rounded down ("floor") or toward zero ("trunc").

    An integer divided by 0 gives -1. Raises RuntimeError for any other rounding mode.
    """
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"rounding_mode must be None, 'trunc' or 'floor', got '{rounding_mode}'")
    floating = common_dtype(self, other).is_floating_point
    if rounding_mode == "floor":
        function = floor_quotient if floating else floor_quotient_of_integers
    else:
        function = truncated_quotient if floating else truncated_quotient_of_integers
    return elementwise(function, self, other, out=out)


@triton.jit
def short_floor_quotient(x, y):
    """Return the floored quotient in fp32, and its magnitude, which must be less than 2^18.

    The result is the nearest whole number, or one less or more, depending on the sign of the remainder. The
    magnitude is 0 for a zero divisor; the quotient is then infinite, and NaN for 0 / 0.
    """
    a, b = tl.abs(x), tl.abs(y)
    q, whole, left = near_quotient(a, b)
    left = tl.where(b == float("inf"), a, left)
    down, up = tl.where(left < 0, whole - 1, whole), tl.where(left > 0, whole + 1, whole)
    signs_differ = (x.to(tl.int32, bitcast=True) ^ y.to(tl.int32, bitcast=True)) < 0
    none = b == 0
    most = a * float("inf")
    r = tl.where(signs_differ, tl.where(none, most, up) * -1.0, tl.where(none, most, down))
    return r, tl.where(none, 0.0, q)


@triton.jit
def floor_quotient_fp64(x, y):
    """Return floor(x / y) in fp64.

    A quotient with at most 20 bits, or with y = 0, takes the short path. If any lane needs more, the block also
    runs `long_floor_quotient`.
    """
    a, b = tl.abs(x), tl.abs(y)
    none = (b == 0) & (a < float("inf"))
    short = none | ((a < b * 1048576.0) & (b < float("inf")))  # a NaN is not short either
    whole = whole_quotient(a, b)
    down = tl.where(tl.fma(whole * -1.0, b, a) > 0, whole + 1, whole) * -1.0
    whole = tl.where((x < 0) != (y < 0), down, whole)
    zero = x * 0.0 * y  # zero with the quotient's sign
    whole = tl.where(none, with_sign(a / b, zero), tl.where(whole == 0, zero, whole))
    if tl.max(tl.where(short, 0, 1), 0) > 0:
        whole = tl.where(short, whole, long_floor_quotient(x, y))
    return whole


@triton.jit
def floor_quotient(x, y):
    """Return floor(x / y), with the short path if all quotients in the block are short, else `long_floor_quotient`."""
    if x.dtype.is_fp64():
        r = floor_quotient_fp64(x, y)
    else:
        r, q = short_floor_quotient(x, y)
        if tl.max(q.to(tl.int32, bitcast=True), 0) >= 0x48800000:  # 2^18, or NaN
            r = long_floor_quotient(x, y)
    return r
