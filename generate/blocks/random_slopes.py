"""Rectified linear units with random slopes (rrelu)."""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.random import between, units32, units64

__all__ = ["random_slopes"]


@triton.jit
def drawn_slope(u, x, low, high):
    """Return the result and its slope: a random slope if x <= 0, else 1."""
    slope = tl.where(x <= 0, between(u, low, high, u.dtype), 1.0)
    return x * slope, slope


@triton.jit
def mean_slope(x, slope):
    return tl.where(x <= 0, x * slope, x)


def random_slopes(x, noise, lower, upper, training, philox, out):
    """Compute rrelu(x) in `out` and return it; in training the slopes go to `noise`.

    Raises RuntimeError if noise and x differ in shape, or if lower > upper.
    """
    if noise.shape != x.shape:
        raise RuntimeError(f"noise {tuple(noise.shape)} does not match input {tuple(x.shape)}")
    if lower > upper:
        raise RuntimeError(f"lower slope {lower} is greater than upper slope {upper}")
    if not training:
        return elementwise(mean_slope, x, numbers=((lower + upper) / 2,), out=out)
    source = units64 if x.dtype == torch.float64 else units32
    return elementwise(drawn_slope, x, numbers=(lower, upper), source=(source, *philox), out=(out, noise))[0]
