"""Orthogonal polynomials by their recurrences."""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.functions import arctangent_of


@triton.jit
def arccosine(x):
    return 2 * arctangent_of(root(1 - x), root(1 + x))


@triton.jit
def degree(n, x):
    """A degree as a whole number in the shape of x; -1 for what is none."""
    n = n + tl.zeros_like(x)
    return tl.where((n > -1) & (n < 9.0e18), n, -1.0).to(tl.int64)


@triton.jit
def chebyshev_polynomial(x, n, KIND: tl.constexpr):
    """T, U, V or W of degree n: by 2 x p - q, in (-1, 1) from degree 7 on by the cosines and sines that they are."""
    x, last = x + tl.zeros_like(n), degree(n, x)
    inside = (tl.abs(x) < 1) & (last > (6 if KIND == "T" else 8))
    angle, m = arccosine(tl.where(inside, x, 0.0)), last.to(x.dtype)
    if KIND == "T":
        first, direct = x, tl.cos(m * angle)
    elif KIND == "U":
        first, direct = 2 * x, divide(tl.sin((m + 1) * angle), tl.sin(angle))
    elif KIND == "V":
        first, direct = 2 * x - 1, divide(tl.cos((m + 0.5) * angle), tl.cos(0.5 * angle))
    else:
        first, direct = 2 * x + 1, divide(tl.sin((m + 0.5) * angle), tl.sin(0.5 * angle))
    p, q, k = tl.full(x.shape, 1, x.dtype), first, 1
    r = tl.where(last == 0, p, first)
    until = tl.where(inside, 0, last)
    while tl.max(((k < until) & (q == q)).to(tl.int32), 0) > 0:
        p, q = q, 2 * x * q - p
        k += 1
        r = tl.where(k <= until, q, r)
    return tl.where(last < 0, 0.0, tl.where(inside, direct, r))


@triton.jit
def recurrent_polynomial(x, n, KIND: tl.constexpr):
    """Of degree n, from those of the two degrees below: Hermite's (of physicists and of probability), Laguerre's and
    Legendre's."""
    x, last = x + tl.zeros_like(n), degree(n, x)
    p, k = tl.full(x.shape, 1, x.dtype), 1
    if KIND == "hermite":
        q = 2 * x
    elif KIND == "laguerre":
        q = 1 - x
    else:
        q = x
    r = tl.where(last == 0, p, q)
    while tl.max(((k < last) & (q == q)).to(tl.int32), 0) > 0:
        if KIND == "hermite":
            following = 2 * x * q - 2 * k * p
        elif KIND == "hermite_e":
            following = x * q - k * p
        elif KIND == "laguerre":
            following = ((2 * k + 1 - x) * q - k * p) / (k + 1)
        else:
            following = ((2 * k + 1) * x * q - k * p) / (k + 1)
        p, q = q, following
        k += 1
        r = tl.where(k <= last, q, r)
    return tl.where(last < 0, 0.0, r)
