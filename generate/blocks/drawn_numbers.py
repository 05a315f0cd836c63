"""Random numbers with a given distribution, by inversion of its distribution function from uniform numbers above 0."""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.random import random_words, unit32, units64

__all__ = ["draw_transformed", "positive_units64"]


@triton.jit
def positive_units32(start, BLOCK: tl.constexpr, seed, offset):
    """Return float32 in (0, 1]; the smallest value is 2^-33."""
    return unit32(random_words(start, BLOCK, seed, offset))


@triton.jit
def positive_units64(start, BLOCK: tl.constexpr, seed, offset):
    """Return float64 in (0, 1] with 53 bits."""
    return units64(start, BLOCK, seed, offset) + 1.1102230246251565e-16


def draw_transformed(function, numbers, out, philox):
    """Fill `out` with function(u, *numbers) for uniform u in (0, 1], in float64 for float64 and else in float32."""
    source = positive_units64 if out.dtype == torch.float64 else positive_units32
    return elementwise(function, *numbers, source=(source, *philox), common=out.dtype, out=out)
