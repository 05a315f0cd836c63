"""A hash of bytes on a GPU that depends on their order, so that only new contents are copied to the host.

Each 1- to 8-byte word is mixed with its position by a multiply-xorshift finaliser (after MurmurHash3's fmix64), under
two sets of constants; the two sums modulo 2^64 are the hash. It names contents within one recording; what is stored is
known by the blake3 of its bytes.
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
    tl.store(sums_ptr + 2 * program, tl.sum(a.to(tl.int64, bitcast=True), axis=0))
    tl.store(sums_ptr + 2 * program + 1, tl.sum(b.to(tl.int64, bitcast=True), axis=0))


def device_hash(raw: torch.Tensor) -> tuple[int, int, int, int]:
    """Length, word size and two 64-bit sums of a uint8 tensor. Waits for the device."""
    width = math.gcd(raw.data_ptr(), raw.numel(), 8)
    words = raw.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width])
    programs = triton.cdiv(words.numel(), BLOCK * BLOCKS)
    sums = torch.empty((programs, 2), dtype=torch.int64, device=raw.device)
    _hash_words[(programs,)](words, words.numel(), sums, BLOCK=BLOCK, BLOCKS=BLOCKS)
    first, second = sums.sum(0).tolist()
    return raw.numel(), width, first, second
