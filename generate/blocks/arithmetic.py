"""Arithmetic that is rounded as ATen rounds it, in fp32 and fp64, and functions that several operators share."""

import triton
import triton.language as tl


@triton.jit
def identity(x):
    return x


@triton.jit
def square(x):
    return x * x


@triton.jit
def divide(x, y):
    """x / y, rounded to nearest."""
    return x / y if x.dtype.is_fp64() else tl.div_rn(x, y)


@triton.jit
def root(x):
    """The square root, rounded to nearest."""
    return tl.sqrt(x) if x.dtype.is_fp64() else tl.sqrt_rn(x)


@triton.jit
def reciprocal_root(x):
    return 1 / root(x)


@triton.jit
def no_less(x, low):
    """The larger of two, or NaN."""
    return tl.where((x > low) | (x != x), x, low)


@triton.jit
def no_more(x, high):
    """The smaller of two, or NaN."""
    return tl.where((x < high) | (x != x), x, high)


@triton.jit
def sign_of(x):
    """-1, 0 or 1, of NaN 0."""
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)
