"""aten::cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor

Computes median + sigma * tan(pi * (u - 1/2)) from a uniform number u between 0 and 1.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.random import random_words, units64

OVERLOADS = ("aten::cauchy",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def centred32(start, BLOCK: tl.constexpr, seed, offset):
    """Return fp32 numbers with 23 random bits between -1/2 and 1/2, as many above 0 as below."""
    return (random_words(start, BLOCK, seed, offset) >> 9).to(tl.float32) * 1.1920928955078125e-07 - 0.49999994039535522


@triton.jit
def centred64(start, BLOCK: tl.constexpr, seed, offset):
    return units64(start, BLOCK, seed, offset) - 0.49999999999999994


@triton.jit
def tangent(u, median, sigma):
    angle = 3.141592653589793 * u
    return median + sigma * (tl.sin(angle) / tl.cos(angle))


def wrapper(self, median=0.0, sigma=1.0, *, generator=None, out=None, philox):
    if sigma <= 0:
        raise RuntimeError(f"sigma must be positive, got {sigma}")
    out = torch.empty_like(self) if out is None else out
    source = centred64 if out.dtype == torch.float64 else centred32
    return elementwise(tangent, median, sigma, source=(source, *philox), common=out.dtype, out=out)
