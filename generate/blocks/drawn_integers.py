"""Random integers in a range, of 64 bits of Philox each: element i has words 2 (i % 2) and the next of counter i // 2.

An integer is the high half of the product of its 64 bits and of how many there are, so that none is drawn more often
than another by more than one in 2^64 (Lemire, Fast random integer generation in an interval, 2019).
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.random import four_words

__all__ = ["draw_integers", "last_integer", "random_int64"]


@triton.jit
def scaled_word(high, low, count):
    """The high half of (high * 2^32 + low) * count, in 64 bits; count 0 stands for 2^64."""
    a, b = high.to(tl.uint64), low.to(tl.uint64)
    above, below = count >> 32, count & 0xFFFFFFFF
    first = a * below + ((b * below) >> 32)
    second = b * above + (first & 0xFFFFFFFF)
    return tl.where(count == 0, (a << 32) | b, a * above + (first >> 32) + (second >> 32))


@triton.jit
def integers_below(start, BLOCK: tl.constexpr, seed, offset, low, count):
    """int64 [BLOCK], from low on; BLOCK is a multiple of 2."""
    a, b, c, d = four_words(seed, offset, tl.cast(start, tl.int64) // 2 + tl.arange(0, BLOCK // 2))
    many = tl.cast(count, tl.uint64)
    shares = tl.reshape(tl.join(scaled_word(a, b, many), scaled_word(c, d, many)), [BLOCK])
    return shares.to(tl.int64) + low


@triton.jit
def random_int64(start, BLOCK: tl.constexpr, seed, offset):
    """int64 [BLOCK] of 64 random bits each."""
    return integers_below(start, BLOCK, seed, offset, 0, 0)


def last_integer(dtype):
    """The largest integer that a dtype holds with all before it."""
    if dtype.is_floating_point:
        return int(2 / torch.finfo(dtype).eps)
    return 1 if dtype == torch.bool else torch.iinfo(dtype).max


def _held(value, dtype, sign):
    """The next integer in this direction, or this one, that a floating-point dtype holds."""
    step = 1 << len([k for k in range(1, 64) if abs(value) >> k >= last_integer(dtype) // 2])
    return sign * (sign * value // step * step)


def draw_integers(out, low, high, philox):
    """Integers of [low, high), of those that its dtype holds, in `out`."""
    if low >= high:
        raise RuntimeError(f"no integers of [{low}, {high})")
    last = high - 1
    if out.dtype.is_floating_point:
        low, last = _held(low, out.dtype, -1), _held(last, out.dtype, 1)
    elif last > last_integer(out.dtype) or low < last_integer(out.dtype) - 2**64:
        raise RuntimeError(f"{out.dtype} holds no integers of [{low}, {high})")
    count = last - low + 1
    count -= 1 << 64 if count >= 1 << 63 else 0
    return elementwise(identity, source=(integers_below, *philox, low, count), common=torch.int64, out=out)
