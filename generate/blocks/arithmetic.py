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
