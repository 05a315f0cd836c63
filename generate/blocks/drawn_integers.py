"""Random integers in a range, from 64 Philox bits each.

Element i has words 2 (i % 2) and the next one at counter i // 2. The integer is the high half of its 64 bits
times the number of possible values. Their probabilities then differ by at most 2^-64 (Lemire, Fast random
integer generation in an interval, 2019).
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
    """Return the high 64 bits of (high * 2^32 + low) * count, where count 0 means 2^64."""
    a, b = high.to(tl.uint64), low.to(tl.uint64)
    above, below = count >> 32, count & 0xFFFFFFFF
    first = a * below + ((b * below) >> 32)
    second = b * above + (first & 0xFFFFFFFF)
    return tl.where(count == 0, (a << 32) | b, a * above + (first >> 32) + (second >> 32))


@triton.jit
def integers_below(start, BLOCK: tl.constexpr, seed, offset, low, count):
    """Return int64 [BLOCK] in [low, low + count); BLOCK is a multiple of 2."""
    a, b, c, d = four_words(seed, offset, tl.cast(start, tl.int64) // 2 + tl.arange(0, BLOCK // 2))
    many = tl.cast(count, tl.uint64)
    shares = tl.reshape(tl.join(scaled_word(a, b, many), scaled_word(c, d, many)), [BLOCK])
    return shares.to(tl.int64) + low


@triton.jit
def random_int64(start, BLOCK: tl.constexpr, seed, offset):
    """Return int64 [BLOCK] with 64 random bits each."""
    return integers_below(start, BLOCK, seed, offset, 0, 0)


def last_integer(dtype):
    """Return the largest n for which a dtype represents every integer up to n."""
    if dtype.is_floating_point:
        return int(2 / torch.finfo(dtype).eps)
    return 1 if dtype == torch.bool else torch.iinfo(dtype).max


def _representable(value, dtype, sign):
    """Return `value`, or the next integer in the direction `sign` that a floating-point dtype represents."""
    step = 1 << len([k for k in range(1, 64) if abs(value) >> k >= last_integer(dtype) // 2])
    return sign * (sign * value // step * step)


def draw_integers(out, low, high, philox):
    """Fill `out` with random integers in [low, high) that its dtype represents, and return it.

    Raises RuntimeError if the range is empty, or if the dtype cannot represent it.
    """
    if low >= high:
        raise RuntimeError(f"the range [{low}, {high}) is empty")
    last = high - 1
    if out.dtype.is_floating_point:
        low, last = _representable(low, out.dtype, -1), _representable(last, out.dtype, 1)
    elif last > last_integer(out.dtype) or low < last_integer(out.dtype) - 2**64:
        raise RuntimeError(f"{out.dtype} cannot represent all integers in [{low}, {high})")
    count = last - low + 1
    # as a signed 64-bit argument: 2^64 becomes 0, which `scaled_word` takes for 2^64
    count -= 1 << 64 if count >= 1 << 63 else 0
    return elementwise(identity, source=(integers_below, *philox, low, count), common=torch.int64, out=out)
