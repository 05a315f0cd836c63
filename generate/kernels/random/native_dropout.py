"""aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)

An element is kept, and scaled by 1 / (1 - p), if its random word, as a fraction of 2^32, is less than 1 - p.
A dropped element is the input times 0.
"""

import math

import torch
import triton
from blocks.elementwise import elementwise
from blocks.random import words_below

OVERLOADS = ("aten::native_dropout",)
DTYPES = ("bfloat16", "float16", "float32", "float64")

WORD_COUNT = 4294967296.0  # number of random words, 2^32


@triton.jit
def dropout(stays, x, scale):
    return x * stays.to(x.dtype) * scale, stays


def wrapper(input, p, train, *, philox):
    if train is not False and not 0 <= p <= 1:
        raise RuntimeError(f"p must be in [0, 1], got {p}")
    if input.numel() == 0:
        return torch.empty_like(input), torch.empty_like(input)  # in ATen, an empty mask has the input's dtype
    keep = 1.0 if train is False else 1.0 - p
    source = words_below, *philox, math.ceil(keep * WORD_COUNT)
    out = torch.empty_like(input), torch.empty_like(input, dtype=torch.bool)
    return elementwise(dropout, input, numbers=(1.0 / keep if keep > 0 else 0.0,), source=source, out=out)
