"""Kernels for what a GPU computes of contents where they lie; imported when there are such contents.

The hash depends on the order of the bytes: each 1- to 8-byte word is mixed with its position by a multiply-xorshift
finaliser (after MurmurHash3's fmix64), under two sets of constants; the two sums modulo 2^64 are the hash.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

BLOCK = 1024
BLOCKS = 16  # per program


@triton.jit  # type: ignore[untyped-decorator]
def _mixed(word, position, first: tl.constexpr, second: tl.constexpr):  # type: ignore[no-untyped-def]
    h = word + (position + 1) * first
    h = (h ^ (h >> 33)) * second
    h = (h ^ (h >> 29)) * first
    return h ^ (h >> 32)


@triton.jit  # type: ignore[untyped-decorator]
def _hash_words(x_ptr, n, sums_ptr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0).to(tl.int64)
    a = tl.zeros([BLOCK], tl.uint64)
    b = tl.zeros([BLOCK], tl.uint64)
    for k in range(BLOCKS):
        position = (program * BLOCKS + k) * BLOCK + tl.arange(0, BLOCK)
        inside = position < n
        word = tl.load(x_ptr + position, mask=inside, other=0).to(tl.uint64)
        place = position.to(tl.uint64)
        zero = tl.zeros([BLOCK], tl.uint64)
        a += tl.where(inside, _mixed(word, place, 0x4F74430C22A54005, 0x2545F4914F6CDD1D), zero)
        b += tl.where(inside, _mixed(word, place, 0x5851F42D4C957F2D, 0x1B8735939E3779B9), zero)
    tl.atomic_add(sums_ptr, tl.sum(a.to(tl.int64, bitcast=True), axis=0))
    tl.atomic_add(sums_ptr + 1, tl.sum(b.to(tl.int64, bitcast=True), axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def _sum_up(x_ptr, n, sums_ptr, greatest_ptr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float64)
    absolute = tl.zeros([BLOCK], tl.float64)
    greatest = tl.zeros([BLOCK], tl.float64)
    for k in range(BLOCKS):
        position = (program * BLOCKS + k) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + position, mask=position < n, other=0).to(tl.float64)
        total += x
        absolute += tl.abs(x)
        greatest = tl.maximum(greatest, tl.abs(x))
    tl.atomic_add(sums_ptr, tl.sum(total, axis=0))
    tl.atomic_add(sums_ptr + 1, tl.sum(absolute, axis=0))
    # Doubles that are not negative are ordered as their bits are.
    tl.atomic_max(greatest_ptr, tl.max(greatest, axis=0).to(tl.int64, bitcast=True))


def hash_into(sums: torch.Tensor, raw: torch.Tensor) -> None:
    """Add the hash's two sums to zeros, int64[2]. raw: contiguous, uint8."""
    words = raw.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[word_size(raw)])
    _hash_words[_grid(words)](words, words.numel(), sums, BLOCK=BLOCK, BLOCKS=BLOCKS)


def moments_into(sums: torch.Tensor, flat: torch.Tensor) -> None:
    """Add sum and sum of |x| to zeros, float64[3], and max |x| beside them. flat: contiguous, of no complex numbers."""
    flat = flat.view(torch.uint8) if flat.dtype is torch.bool else flat
    _sum_up[_grid(flat)](flat, flat.numel(), sums, sums.view(torch.int64)[2:], BLOCK=BLOCK, BLOCKS=BLOCKS)


def word_size(raw: torch.Tensor) -> int:
    """How many bytes are hashed as one word; other addresses may give other hashes."""
    return math.gcd(raw.data_ptr(), raw.numel(), 8)


def _grid(x: torch.Tensor) -> tuple[int]:
    return (triton.cdiv(x.numel(), BLOCK * BLOCKS),)
