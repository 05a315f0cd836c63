"""Arithmetic with ATen's rounding in fp32 and fp64, and small functions that several operators share."""

import triton
import triton.language as tl


@triton.jit
def identity(x):
    """Return x."""
    return x


@triton.jit
def square(x):
    """Return x * x."""
    return x * x


@triton.jit
def divide(x, y):
    """Return x / y, rounded to nearest.

    Triton's `/` is not rounded to nearest in fp32.
    """
    return x / y if x.dtype.is_fp64() else tl.div_rn(x, y)


@triton.jit
def root(x):
    """Return the square root, rounded to nearest."""
    return tl.sqrt(x) if x.dtype.is_fp64() else tl.sqrt_rn(x)


@triton.jit
def reciprocal_root(x):
    """Return 1 / sqrt(x), with two roundings."""
    return 1 / root(x)


@triton.jit
def no_less(x, low):
    """Return max(x, low), and NaN if x is NaN."""
    return tl.where((x > low) | (x != x), x, low)


@triton.jit
def no_more(x, high):
    """Return min(x, high), and NaN if x is NaN."""
    return tl.where((x < high) | (x != x), x, high)


@triton.jit
def sign_of(x):
    """Return -1, 0 or 1, and 0 if x is NaN."""
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)
