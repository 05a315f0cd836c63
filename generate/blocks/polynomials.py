"""Orthogonal polynomials by their recurrences."""

import math

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.functions import arctangent_of


@triton.jit
def arccosine(x):
    return 2 * arctangent_of(root(1 - x), root(1 + x))


@triton.jit
def degree(n, x):
    """Return a degree as a whole number in x's shape and dtype, or -1 if it is not a valid degree."""
    n = n + tl.zeros_like(x)
    # ATen truncates a degree to int64, and 9e18 is below 2^63
    return tl.where((n > -1) & (n < 9.0e18), tl.floor(tl.where(n > 0, n, 0.0)), -1.0)


def finite_degree(n):
    """Raise RuntimeError if a number is infinite or NaN."""
    if isinstance(n, float) and not math.isfinite(n):
        raise RuntimeError(f"a polynomial has no degree {n}")


@triton.jit
def chebyshev_direct(x, m, KIND: tl.constexpr):
    """Evaluate T, U, V or W with degree m in (-1, 1) by its definition through cosines and sines."""
    angle = arccosine(x)
    if KIND == "T":
        r = tl.cos(m * angle)
    elif KIND == "U":
        r = divide(tl.sin((m + 1) * angle), tl.sin(angle))
    elif KIND == "V":
        r = divide(tl.cos((m + 0.5) * angle), tl.cos(0.5 * angle))
    else:
        r = divide(tl.sin((m + 0.5) * angle), tl.sin(0.5 * angle))
    return r


@triton.jit
def chebyshev_polynomial(x, n, KIND: tl.constexpr):
    """Evaluate T, U, V or W with degree n by the recurrence p, q -> q, 2 x q - p.

    In (-1, 1) the direct form replaces it from degree 7 (T) or 9 (U, V, W) on.
    """
    x, last = x + tl.zeros_like(n), degree(n, x)
    inside = (tl.abs(x) < 1) & (last > (6 if KIND == "T" else 8))
    if KIND == "T":
        first = x
    elif KIND == "U":
        first = 2 * x
    elif KIND == "V":
        first = 2 * x - 1
    else:
        first = 2 * x + 1
    p, q, k = tl.full(x.shape, 1, x.dtype), first, 1
    r = tl.where(last == 0, p, first)
    until = tl.where(inside, 0.0, last)
    # NaN stays NaN, so its lane does not keep the loop running; this also bounds a huge degree with |x| > 1
    while tl.max(((k < until) & (q == q)).to(tl.int32), 0) > 0:
        p, q = q, 2 * x * q - p
        k += 1
        r = tl.where(k <= until, q, r)
    if tl.max(inside.to(tl.int32), 0) > 0:
        r = tl.where(inside, chebyshev_direct(tl.where(inside, x, 0.0), last, KIND), r)
    return tl.where(last < 0, 0.0, r)


@triton.jit
def recurrent_polynomial(x, n, KIND: tl.constexpr):
    """Evaluate a polynomial with degree n from those with the two degrees below.

    KIND selects Hermite (physicists' or probabilists'), Laguerre or Legendre.
    """
    x, last = x + tl.zeros_like(n), degree(n, x)
    p, k = tl.full(x.shape, 1, x.dtype), 1
    if KIND == "hermite":
        q = 2 * x
    elif KIND == "laguerre":
        q = 1 - x
    else:
        q = x
    r = tl.where(last == 0, p, q)
    while tl.max(((k < last) & (q == q)).to(tl.int32), 0) > 0:  # NaN stays NaN, so its lane is done
        share = 1 / tl.cast(k + 1, tl.float64)
        if KIND == "hermite":
            following = 2 * x * q - 2 * k * p
        elif KIND == "hermite_e":
            following = x * q - k * p
        elif KIND == "laguerre":
            following = ((2 * k + 1 - x) * q - k * p) * share
        else:
            following = ((2 * k + 1) * x * q - k * p) * share
        p, q = q, following
        k += 1
        r = tl.where(k <= last, q, r)
    return tl.where(last < 0, 0.0, r)
