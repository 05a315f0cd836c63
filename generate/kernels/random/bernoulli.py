"""aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor
aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor
aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor

An element is 1 if its random word, as a fraction of 2^32, is less than its probability.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.random import random_words, words_below

OVERLOADS = ("aten::bernoulli", "aten::bernoulli.p", "aten::bernoulli.Tensor")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

WORD_COUNT = 4294967296.0  # number of random words, 2^32


@triton.jit
def hit(words, p):
    fine, exact = words.to(tl.float64) * 2.3283064365386963e-10, (words >> 8).to(tl.float32) * 5.9604644775390625e-08
    return (fine if p.dtype.is_fp64() else exact) < p  # 2^-32, 2^-24


def wrapper(self, p=None, *, generator=None, out=None, philox):
    if isinstance(p, float) and not 0 <= p <= 1:
        raise RuntimeError(f"p must be in [0, 1], got {p}")
    probability = self if p is None else p
    if isinstance(probability, torch.Tensor) and not probability.is_floating_point():
        raise RuntimeError(f"probabilities must be floating point, got {probability.dtype}")
    if out is None:
        layout = torch.preserve_format if isinstance(p, torch.Tensor) else torch.contiguous_format
        out = torch.empty_like(self, memory_format=layout)
    if isinstance(probability, torch.Tensor):
        return elementwise(hit, probability, source=(random_words, *philox), out=out)
    source = words_below, *philox, math.ceil(p * WORD_COUNT)
    return elementwise(identity, source=source, common=torch.bool, out=out)
