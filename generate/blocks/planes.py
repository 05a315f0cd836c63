"""Small windows on contiguous planes in a flat grid, with one or a few results per lane.

A lane's coordinates come from its number by a multiplication and a shift. Taps are unrolled, and only taps
that may lie out of bounds are masked.
"""

import math

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.limits import INT32_MAX
from blocks.offsets import plain, plain_value

__all__ = ["by_window", "ends_beyond", "magic_numbers", "magic_quotient", "on_planes", "tap_inside"]

LARGEST_ON_PLANES = INT32_MAX - 4096  # elements; 4096 leaves room for the lanes beyond the last element


def magic_numbers(d):
    """Return the integers by which `magic_quotient` divides by d, with d from 1 to 2^31."""
    shift = math.frexp(d - 0.5)[1]  # the least with 2^shift >= d
    # M = ceil(2^(31 + shift) / d) exceeds the quotient by less than 1, so i M / 2^(31 + shift) exceeds i / d by less
    # than 1 / d for i < 2^31, which does not change the floor
    return plain((2 ** (31 + shift) + d - 1) // d), plain(shift)


@triton.jit
def magic_quotient(i, by):
    """Return i // d for i from 0 to 2^31, by multiplication and shift."""
    high = tl.umulhi((2 * i).to(tl.uint32), plain_value(by[0]).to(tl.uint32))
    return (high >> plain_value(by[1]).to(tl.uint32)).to(tl.int32)


@triton.jit
def tap_inside(start, t, size, K: tl.constexpr, P: tl.constexpr, D: tl.constexpr, OVER: tl.constexpr):
    """Return True if tap t lies inside the input; most comparisons are decided at compile time.

    K, P and D are the window size, padding and dilation. OVER means that windows may end beyond the padding.
    """
    is_inside = start == start  # True in the shape of start
    if t * D < P:
        is_inside &= start + t * D >= 0
    if OVER or t * D >= (K - 1) * D + 1 - P:
        is_inside &= start + t * D < size
    return is_inside


@triton.jit
def window_extent(start, size, K: tl.constexpr, P: tl.constexpr, PADDED: tl.constexpr):
    """Return the number of window taps that count along an axis; PADDED includes taps in the padding."""
    end = tl.minimum(start + K, size + P if PADDED else size)
    return tl.maximum(end - (start if PADDED else tl.maximum(start, 0)), 1)


@triton.jit
def by_window(x, top, left, sizes, divisor, WINDOW: tl.constexpr, SIZED: tl.constexpr, PADDED: tl.constexpr):
    """Divide x by the window size if SIZED, else by the divisor.

    The window begins at `top` and `left`. `sizes` holds the input rows and columns first. WINDOW holds sizes,
    strides and padding, each for rows and columns.
    """
    if SIZED:
        size = window_extent(top, sizes[0], WINDOW[0], WINDOW[4], PADDED)
        size = size * window_extent(left, sizes[1], WINDOW[1], WINDOW[5], PADDED)
    else:
        size = tl.zeros_like(left) + plain_value(divisor)
    size = size.to(x.dtype)
    return x // size if x.dtype.is_int() else divide(x, size)


def on_planes(x, out):
    """Return True if both tensors are contiguous and lane offsets fit in 32 bits."""
    return x.is_contiguous() and out.is_contiguous() and max(x.numel(), out.numel()) < LARGEST_ON_PLANES


def ends_beyond(axes):
    """Return True if a window may end beyond the padding; `axes` has two entries from `sliding_axes`."""
    (SH, PH, DH, KH, H, OH, _, _), (SW, PW, DW, KW, W, OW, _, _) = axes[0][0], axes[1][0]
    return (OH - 1) * SH + (KH - 1) * DH + 1 > H + 2 * PH or (OW - 1) * SW + (KW - 1) * DW + 1 > W + 2 * PW
