"""Vector norms as reductions: the map per element, the combination, and the final function."""

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
    """Return |x|^p, in fp64."""
    return tl.exp2(p * tl.log2(tl.abs(x).to(tl.float64)))  # fp64: p multiplies the logarithm's error


@triton.jit
def norm_itself(value, n):
    """Return the combined value as the result."""
    return value


@triton.jit
def square_root(total, n):
    # tl.sqrt_rn is correctly rounded for fp32, and tl.sqrt for fp64
    return tl.sqrt(total) if total.dtype.is_fp64() else tl.sqrt_rn(total)


@triton.jit
def power_root(total, n, p):
    return tl.exp2(tl.log2(total) / p)


def norm_of_order(ord):
    """Return how to reduce a norm: (kind, map, finish, further numbers, dtype of the combined values).

    Order 0 counts nonzeros. Order +-inf takes the largest or smallest magnitude (NaN wins). Orders 1 and 2
    sum in fp32, and any other order sums |x|^p in fp64. Raises RuntimeError for order NaN.
    """
    if ord != ord:
        raise RuntimeError("a norm has no order NaN")
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
