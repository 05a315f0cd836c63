"""Poisson-distributed event counts, in fp64.

Rates below 10 use inversion by summation. Other rates use transformed rejection (Hörmann, The transformed
rejection method for generating Poisson random variables, 1993, algorithm PTRS). Attempt t for element i uses
counter i + t 2^40.
"""

import triton
import triton.language as tl
from blocks.gamma import log_gamma_fp64
from blocks.random import four_words, unit64

__all__ = ["events_of_rate", "seeded_index"]


@triton.jit
def seeded_index(start, BLOCK: tl.constexpr, seed, offset):
    """Return a source for `elementwise`: the flat indices, seed and offset from which `events_of_rate` draws."""
    return tl.cast(start, tl.int64) + tl.arange(0, BLOCK), seed, offset


@triton.jit
def events_below(u, rate):
    """Return the least count whose cumulative probability reaches u in (0, 1], for rate < 10."""
    share = tl.exp(-rate)
    k = tl.zeros_like(share)
    searching = (u > share) & (share > 0)  # a probability that underflows to 0 ends the search
    while tl.max(searching.to(tl.int32), 0) > 0:
        u = tl.where(searching, u - share, u)
        k = tl.where(searching, k + 1.0, k)
        share = tl.where(searching, share * rate / tl.maximum(k, 1.0), share)
        searching = searching & (u > share) & (share > 0)
    return k


@triton.jit
def proposal(i, seed, offset, rate):
    """Return a proposed event count and True if it is accepted, for rate >= 10."""
    a, b, c, d = four_words(seed, offset, i)
    # v in (0, 1], by 2^-53, because it goes into a logarithm; the other constants are those in PTRS
    u, v = unit64(a, b) - 0.5, unit64(c, d) + 1.1102230246251565e-16
    breadth = 0.931 + 2.53 * tl.sqrt(rate)
    slope = 0.02483 * breadth - 0.059
    us = 0.5 - tl.abs(u)
    inside = tl.maximum(us, 1e-300)
    k = tl.floor((2.0 * slope / inside + breadth) * u + rate + 0.43)
    at_once = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (breadth - 2.0))
    possible = (us > 0) & (k >= 0) & ((us >= 0.013) | (v <= us))
    height = tl.log(v * (1.1239 + 1.1328 / (breadth - 3.4)) / (slope / (inside * inside) + breadth))
    density = k * tl.log(rate) - rate - log_gamma_fp64(tl.where(possible, k, 0.0) + 1.0)
    return k, at_once | (possible & (height <= density))


@triton.jit
def events_of_rate(where, rate):
    i, seed, offset = where
    rate = rate.to(tl.float64)
    few = rate < 10
    a, b, _, _ = four_words(seed, offset, i)
    k = events_below(unit64(a, b) + 1.1102230246251565e-16, tl.where(few, rate, 0.0))
    large = tl.where(few, 10.0, rate)
    pending = rate >= 10
    while tl.max(pending.to(tl.int32), 0) > 0:
        proposed, accepted = proposal(i, seed, offset, large)
        k = tl.where(pending & accepted, proposed, k)
        pending = pending & ~accepted
        i += 1099511627776  # 2^40, more than a tensor's elements, so no two attempts share a counter
    return k
