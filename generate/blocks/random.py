"""Random numbers by Philox: one offset per call, and each element's index as counter (docs/judge.md).

Element i takes word i % 4 from counter i // 4. A float64 takes words 2 (i % 2) and the next from counter i //
2. Elements are counted in the results' memory order. A function with the arguments (start, BLOCK, seed,
offset) is a source for `elementwise`.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import polynomial


@triton.jit
def four_words(seed, offset, i):
    """Return four blocks of random uint32 for counters (offset, i), equal to those from `tl.philox`.

    Philox 4 x 32 with ten rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011). One
    64-bit multiplication gives both halves.
    """
    whole, call = tl.cast(seed, tl.int64), tl.zeros_like(i) + offset
    key_low, key_high = whole.to(tl.uint32), (whole >> 32).to(tl.uint32)
    a, b, c, d = call.to(tl.uint32), (call >> 32).to(tl.uint32), i.to(tl.uint32), (i >> 32).to(tl.uint32)
    for _ in tl.static_range(10):  # the multipliers and the key increments are the paper's
        first, second = a.to(tl.uint64) * 0xD2511F53, c.to(tl.uint64) * 0xCD9E8D57
        a, b = (second >> 32).to(tl.uint32) ^ b ^ key_low, second.to(tl.uint32)
        c, d = (first >> 32).to(tl.uint32) ^ d ^ key_high, first.to(tl.uint32)
        key_low, key_high = key_low + 0x9E3779B9, key_high + 0xBB67AE85
    return a, b, c, d


@triton.jit
def random_words(start, BLOCK: tl.constexpr, seed, offset):
    """Return random uint32 [BLOCK]; start and BLOCK are multiples of 4."""
    a, b, c, d = four_words(seed, offset, tl.cast(start, tl.int64) // 4 + tl.arange(0, BLOCK // 4))
    return tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [BLOCK])


@triton.jit
def words_below(start, BLOCK: tl.constexpr, seed, offset, limit):
    """Return True if the random word is less than a limit, which is at most 2^32."""
    return random_words(start, BLOCK, seed, offset).to(tl.int64) < limit


@triton.jit
def units32(start, BLOCK: tl.constexpr, seed, offset):
    """Return float32 in [0, 1) with 24 random bits."""
    return (random_words(start, BLOCK, seed, offset) >> 8).to(tl.float32) * 5.9604644775390625e-08  # 2^-24


@triton.jit
def unit64(high, low):
    """Return float64 in [0, 1) with 53 bits from two blocks of words."""
    # 27 and 26 bits: (high 2^26 + low) / 2^53
    return ((high >> 5).to(tl.float64) * 67108864.0 + (low >> 6).to(tl.float64)) * 1.1102230246251565e-16


@triton.jit
def units64(start, BLOCK: tl.constexpr, seed, offset):
    a, b, c, d = four_words(seed, offset, tl.cast(start, tl.int64) // 2 + tl.arange(0, BLOCK // 2))
    return tl.reshape(tl.join(unit64(a, b), unit64(c, d)), [BLOCK])


@triton.jit
def unit32(words):
    """Return float32 in (0, 1] from words; the least value is 2^-33."""
    return words.to(tl.float32) * 2.3283064365386963e-10 + 1.1641532182693481e-10  # 2^-32 and 2^-33


@triton.jit
def normal_pair(u, v):
    """Return two blocks of standard normal numbers from two uniform ones, u in (0, 1] (Box and Muller, 1958)."""
    radius, angle = tl.sqrt(-2.0 * tl.log(u)), v * 6.283185307179586
    return radius * tl.cos(angle), radius * tl.sin(angle)


@triton.jit
def normal_pair_of_words(a, b):
    """Return two fp32 blocks of standard normal numbers from two blocks of words, each accurate to 1e-6.

    Box and Muller, 1958. The squared radius is -2 log u, with u = 2^k (1 + f) in (0, 1] and 1 + f in [3/4,
    3/2]. The angle is b / 2^32 turns: its first bit gives the sign, and the others give v in [-1/2, 1/2) half
    turns. The minimax polynomials approximate -2 log(1 + f) / f, and, in v^2, sin(pi v) / v and cos(pi v) /
    (1 - 4 v^2).
    """
    bits = unit32(a).to(tl.int32, bitcast=True)
    k = (bits - 0x3F400000) & -8388608  # 0x3F400000 is 3/4, and the mask keeps the exponent: k times 2^23
    f = (bits - k).to(tl.float32, bitcast=True) - 1
    log = polynomial(
        f, (-0.1658033645, 0.3361414054, -0.413504147, 0.5012462358, -0.6662892903, 0.9999726125, -2.000001768)
    )
    radius = tl.sqrt(tl.fma(k.to(tl.float32), -1.652592868e-07, f * log))  # -2 log 2 / 2^23
    radius = (radius.to(tl.uint32, bitcast=True) | (b & 0x80000000)).to(tl.float32, bitcast=True)
    v = (b << 1).to(tl.int32, bitcast=True).to(tl.float32) * 2.3283064365386963e-10
    s = v * v
    sine = v * polynomial(s, (-0.5583960341, 2.543604951, -5.167367812, 3.141589703))
    series = polynomial(s, (-0.05412146458, 0.31900908, -0.9347768461, 0.9999997922))
    return radius * (tl.fma(s, -4.0, 1.0) * series), radius * sine


@triton.jit
def normals32(start, BLOCK: tl.constexpr, seed, offset):
    i = tl.cast(start, tl.int64) // 4 + tl.arange(0, BLOCK // 4)
    a, b, c, d = four_words(seed, offset, i)
    w, x = normal_pair_of_words(a, b)
    y, z = normal_pair_of_words(c, d)
    return tl.reshape(tl.join(tl.join(w, y), tl.join(x, z)), [BLOCK])


@triton.jit
def normals64(start, BLOCK: tl.constexpr, seed, offset):
    a, b, c, d = four_words(seed, offset, tl.cast(start, tl.int64) // 2 + tl.arange(0, BLOCK // 2))
    w, x = normal_pair(unit64(a, b) + 1.1102230246251565e-16, unit64(c, d))  # 2^-53 moves [0, 1) to (0, 1]
    return tl.reshape(tl.join(w, x), [BLOCK])


@triton.jit
def scaled_normal(x, mean, std):
    return mean + std * x


@triton.jit
def between(x, low, high, DTYPE: tl.constexpr):
    """Return low + x * (high - low) as this dtype; a value that rounds to high becomes low."""
    x = (low + x * (high - low)).to(DTYPE)
    return tl.where(x >= high.to(DTYPE), low.to(DTYPE), x)


@triton.jit
def between_fp64(x, low, high):
    return between(x, low, high, tl.float64)


@triton.jit
def between_fp32(x, low, high):
    return between(x, low, high, tl.float32)


@triton.jit
def between_fp16(x, low, high):
    return between(x, low, high, tl.float16)


@triton.jit
def between_bf16(x, low, high):
    return between(x, low, high, tl.bfloat16)


def draw_normal(out, mean, std, philox):
    """Fill `out` with normal numbers and return it; mean and std are numbers, or tensors that broadcast to `out`."""
    source = normals64 if out.dtype == torch.float64 else normals32
    return elementwise(scaled_normal, mean, std, source=(source, *philox), common=out.dtype, out=out)


def draw_uniform(out, low, high, philox):
    """Fill `out` with uniform numbers in [low, high), as in ATen, and return it."""
    source = units64 if out.dtype == torch.float64 else units32
    halves = {torch.float16: between_fp16, torch.bfloat16: between_bf16, torch.float64: between_fp64}
    function = halves.get(out.dtype, between_fp32)
    return elementwise(function, low, high, source=(source, *philox), common=out.dtype, out=out)
