"""Norms with any order as sums of terms, and their slopes, for distances between rows."""

import triton
import triton.language as tl
from blocks.arithmetic import root, sign_of
from blocks.norms import power_of_magnitude


@triton.jit
def norm_term(d, p, ORDER: tl.constexpr):
    """Return the term that a difference d adds to the norm."""
    a = tl.abs(d)
    if ORDER == "0":
        a = tl.where(a > 0, tl.full(a.shape, 1, a.dtype), a)
    elif ORDER == "2" or ORDER == "products":
        a = d * d
    elif ORDER == "p":
        a = power_of_magnitude(d, p)
    return a


@triton.jit
def norm_of_terms(total, p, ORDER: tl.constexpr):
    """Return the norm from the sum (or maximum) of its terms."""
    if ORDER == "2" or ORDER == "products":
        total = root(total)
    elif ORDER == "p":
        total = tl.exp2(tl.log2(total) / p)
    return total


@triton.jit
def norm_slope(d, grad, distance, p, ORDER: tl.constexpr):
    """Return the gradient of one difference from the gradient of the norm, and 0 at points without a derivative."""
    sign = sign_of(d)
    if ORDER == "0":
        slope = tl.zeros_like(d)
    elif ORDER == "1":
        slope = grad * sign
    elif ORDER == "2":
        slope = grad * d / tl.where(distance == 0, 1, distance)
    elif ORDER == "inf":
        slope = tl.where(tl.abs(d) == distance, grad * sign, 0)
    else:
        size = tl.where(distance == 0, 1, distance).to(tl.float64)
        share = tl.exp2((p - 1) * (tl.log2(tl.abs(d).to(tl.float64)) - tl.log2(size)))
        slope = grad * tl.where((d == 0) & (p < 1), 0, sign * share).to(d.dtype)
    return tl.where((distance == 0) & (ORDER != "1"), 0, slope)
