"""Rectified linear units whose slopes are drawn (rrelu)."""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.random import between, units32, units64

__all__ = ["random_slopes"]


@triton.jit
def drawn_slope(u, x, low, high):
    """The result and the slope, of x that is not positive; 1 of others."""
    slope = tl.where(x <= 0, between(u, low, high, u.dtype), 1.0)
    return x * slope, slope


@triton.jit
def mean_slope(x, slope):
    return tl.where(x <= 0, x * slope, x)


def random_slopes(x, noise, lower, upper, training, philox, out):
    """rrelu of x in `out`; in training its slopes in `noise`."""
    if noise.shape != x.shape:
        raise RuntimeError(f"noise {tuple(noise.shape)} for {tuple(x.shape)}")
    if lower > upper:
        raise RuntimeError(f"slopes from {lower} to {upper}")
    if not training:
        return elementwise(mean_slope, x, numbers=((lower + upper) / 2,), out=out)
    source = units64 if x.dtype == torch.float64 else units32
    return elementwise(drawn_slope, x, numbers=(lower, upper), source=(source, *philox), out=(out, noise))[0]
