"""Vector norms: what is made of each element, how that is combined, and what is made of what it comes to."""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import square


@triton.jit
def nonzero(x):
    return (x != 0).to(x.dtype)


@triton.jit
def magnitude(x):
    return tl.abs(x)


@triton.jit
def power_of_magnitude(x, p):
    """In fp64."""
    return tl.exp2(p * tl.log2(tl.abs(x).to(tl.float64)))


@triton.jit
def norm_itself(found, n):
    return found


@triton.jit
def square_root(total, n):
    # Correctly rounded, which tl.sqrt_rn has for fp32 and tl.sqrt for fp64.
    return tl.sqrt(total) if total.dtype.is_fp64() else tl.sqrt_rn(total)


@triton.jit
def power_root(total, n, p):
    return tl.exp2(tl.log2(total) / p)


def norm_of_order(ord):
    """Of a norm: kind of its reduction, map, finish, their further numbers, and the dtype in which values are combined.

    Order 0 counts nonzeros, +-inf takes the largest or smallest magnitude (NaN wins), 1 and 2 sum in fp32, any other
    sums |x|^p in fp64. Raises RuntimeError for NaN.
    """
    if ord != ord:
        raise RuntimeError("a norm of order NaN")
    known = {
        0: ("sum", nonzero, norm_itself),
        1: ("sum", magnitude, norm_itself),
        2: ("sum", square, square_root),
        math.inf: ("max", magnitude, norm_itself),
        -math.inf: ("min", magnitude, norm_itself),
    }
    if ord in known:
        return *known[ord], (), torch.float32
    return "sum", power_of_magnitude, power_root, (ord,), torch.float64
