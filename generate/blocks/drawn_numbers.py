"""Random numbers of a distribution by the inverse of its distribution function, of uniform numbers that are never 0."""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.random import random_words, unit32, units64

__all__ = ["draw_transformed", "positive_units64"]


@triton.jit
def positive_units32(start, BLOCK: tl.constexpr, seed, offset):
    """float32 in (0, 1]; the least is 2^-33."""
    return unit32(random_words(start, BLOCK, seed, offset))


@triton.jit
def positive_units64(start, BLOCK: tl.constexpr, seed, offset):
    """float64 in (0, 1], of 53 bits."""
    return units64(start, BLOCK, seed, offset) + 1.1102230246251565e-16


def draw_transformed(function, numbers, out, philox):
    """function(u, *numbers) in `out`, of float32 u in (0, 1], or of float64."""
    source = positive_units64 if out.dtype == torch.float64 else positive_units32
    return elementwise(function, *numbers, source=(source, *philox), common=out.dtype, out=out)
