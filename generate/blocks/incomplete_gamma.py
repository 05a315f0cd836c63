"""Regularized incomplete gamma functions P and Q = 1 - P, in fp64 (DLMF chapter 8).

Small x uses a power series, and large x uses Legendre's continued fraction. Temme's uniform expansion serves
a >= 256 with x within 20 % of a. Its coefficients follow from DLMF 8.12.9 to 8.12.11 in rational arithmetic,
and terms below 1e-18 are cut.
"""

import triton
import triton.language as tl
from blocks.error_functions import chebyshev_series, complementary_erf
from blocks.functions import expm1, polynomial
from blocks.gamma import log_gamma_factor

__all__ = ["regularized_gamma_p", "regularized_gamma_q"]


@triton.jit
def log_excess(x, a):
    """Return x / a - 1 - log(x / a) for positive x and a.

    Near x = a the logarithm cancels, so the series of the inverse hyperbolic tangent replaces it.
    """
    m = (x - a) / a
    near = tl.abs(m) <= 0.25
    s = tl.where(near, m, 0.0)
    s = s / (s + 2)
    t = s * s
    series = polynomial(t, (
        0.05263157894736842, 0.058823529411764705, 0.06666666666666667, 0.07692307692307693, 0.09090909090909091,
        0.1111111111111111, 0.14285714285714285, 0.2, 0.3333333333333333,
    ))  # fmt: skip
    return tl.where(near, s * m - 2 * s * t * series, m - tl.log(tl.where(near, 1.0, x / a)))


@triton.jit
def stirling_quotient(a):
    """Return Stirling's formula divided by Gamma(a), for a >= 1."""
    return chebyshev_series(2 / a - 1, (
        0.9602917381274741, -0.03896823762489201, 0.0007830980245595887, 3.650747909394719e-05,
        -6.39955236325099e-06, 2.5086764441246126e-07, 6.642908871454746e-08, -1.6472719668006103e-08,
        1.5226540329235268e-09, 1.7829476780205687e-10, -1.0223973513757191e-10, 2.1131548802841964e-11,
        -1.579766301957264e-12, -5.892290053182131e-13, 2.9426575023920877e-13, -7.14483750686733e-14,
        8.040214030678724e-15, 1.79571803381945e-15, -1.3509439033250368e-15, 4.453104004162125e-16,
        -8.839215022480227e-17, 2.4492005805351185e-18, 6.810693615141177e-18, -3.569702427689511e-18,
        1.1311653979184076e-18,
    ))  # fmt: skip


@triton.jit
def uniform_series(eta, w):
    """Return the sum of c[k](eta) w^k (DLMF 8.12.7)."""
    r = tl.zeros_like(eta)
    r = r * w + polynomial(eta, (-0.00033679855336635813,))
    r = r * w + polynomial(eta, (-0.0002990724803031902, 0.0007840392217200666, -0.0008618882909167117))
    r = r * w + polynomial(eta, (
        1.1082654115347302e-05, -2.396505113867297e-07, -7.561801671883977e-05, 0.00026772063206283885,
        -0.0004691894943952557, 0.00022947209362139917, 0.0006494341563786008,
    ))  # fmt: skip
    r = r * w + polynomial(eta, (
        1.3721957309062934e-06, 3.423578734096138e-08, -1.2760635188618728e-05, 5.2923448829120125e-05,
        -0.0001073665322636516, 2.0093878600823047e-06, 0.0007716049382716049, -0.0026813271604938273,
        0.004133597883597883,
    ))  # fmt: skip
    r = r * w + polynomial(eta, (
        1.378633446915721e-07, 4.647127802807434e-09, -1.6120900894563446e-06, 7.64916091608111e-06,
        -1.8098550334489977e-05, -4.018775720164609e-07, 0.00020576131687242798, -0.0009902263374485596,
        0.0026455026455026454, -0.003472222222222222, -0.001851851851851852,
    ))  # fmt: skip
    return r * w + polynomial(eta, (
        1.0261809784240309e-08, 6.707853543401498e-09, -1.7665952736826078e-07, 8.296711340953087e-07,
        -1.85406221071516e-06, -2.185448510679992e-06, 3.919263178522438e-05, -0.0001787551440329218,
        0.0003527336860670194, 0.0011574074074074073, -0.014814814814814815, 0.08333333333333333,
        -0.3333333333333333,
    ))  # fmt: skip


@triton.jit
def gamma_series(x, a, small):
    """Sum the power series for the lower incomplete gamma function, for x <= a or small arguments.

    The terms are x^k / ((a + 1) ... (a + k)) from k = 0 on. If `small` is set, they are (-x)^k / (k! (a + k))
    from k = 1 on (DLMF 8.7.1).
    """
    term = tl.full(x.shape, 1, tl.float64)
    total, k = tl.where(small, 0.0, term), 1
    # The slowest element decides when the loop ends; the others add terms that do not change their sums.
    while tl.max((tl.abs(term) > 1e-17 * tl.abs(total)).to(tl.int32), 0) > 0:
        below = a + k
        term = term * x / tl.where(small, -k, below)
        total += tl.where(small, term / below, term)
        k += 1
    return total


@triton.jit
def gamma_fraction(x, a):
    """Return 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)) for x > a (DLMF 8.9.2), by Lentz's algorithm."""
    b = x + 1 - a
    d = 1 / b
    total, c, change, k = d, tl.full(x.shape, 1e300, tl.float64), tl.zeros_like(x), 1
    # The count bounds the loop if rounding errors keep the last factor away from 1.
    while (tl.max((tl.abs(change - 1) > 4e-16).to(tl.int32), 0) > 0) & (k < 400):
        top = (a - k) * k
        b += 2
        d = 1 / (b + top * d)
        c = b + top / c
        change = c * d
        total = total * change
        k += 1
    return total


@triton.jit
def regularized_gamma(x, a):
    """Return P and Q for positive and finite arguments.

    The common factor is x^a e^-x / Gamma(a + 1), or x^a / Gamma(a + 1) if both arguments are small.
    """
    uniform = (a >= 256) & (tl.abs(x - a) <= 0.2 * a)
    small = (a < 1) & (x <= 1.1)
    below = (x <= a) & ~(uniform | small)
    large = a >= 1
    b = tl.where(large, a, 1.0)
    excess = log_excess(x, b)
    power = tl.where(large, 0.0, a)
    power = power * tl.log(x) - log_gamma_factor(1 + power) * power * (power - 1)
    factor = tl.exp(tl.where(large, b * excess * -1.0, tl.where(small, power, power - x)))
    scale = tl.sqrt(6.283185307179586 * b)
    series = gamma_series(tl.where(below | small, x, 1.0), tl.where(below | small, a, 256.0), small)
    rest = factor * a * series
    whole = tl.where(large, factor * stirling_quotient(b) / scale, factor)
    far = (whole > 0) & ~(uniform | small | below)
    upper = whole * a * gamma_fraction(tl.where(far, x, 256.0), tl.where(far, a, 1.0))
    upper = tl.where(far, upper, 0.0)
    side = tl.sqrt(tl.where(uniform, excess * a, 1.0))
    eta = tl.where(x < a, -1.0, 1.0) * tl.sqrt(2 * tl.where(uniform, excess, 0.0))
    tail = 0.5 * complementary_erf(side)
    middle = factor * uniform_series(eta, 1 / b) / scale
    p = tl.where(x < a, tail - middle, 1 - tail - middle)
    q = tl.where(x < a, 1 - tail + middle, tail + middle)
    p = tl.where(small, factor + rest, tl.where(below, whole * series, tl.where(uniform, p, 1 - upper)))
    return p, tl.where(
        small, expm1(power) * -1.0 - rest, tl.where(below, 1 - whole * series, tl.where(uniform, q, upper))
    )


@triton.jit
def with_limits(r, a, x, least: tl.constexpr):
    """Return r, or the limit of P or Q if an argument is 0, infinite, negative or NaN.

    `least` is the value at x = 0: 0 for P and 1 for Q. If one argument is NaN, the other one decides the
    result if it is infinite, or if it is x and 0. The result is NaN if both arguments are 0, both are
    infinite, or one is negative.
    """
    r = tl.where((a != a) | (x != x), float("nan"), r)
    r = tl.where(x == float("inf"), 1.0 - least, r)
    r = tl.where(a == float("inf"), tl.where(x == float("inf"), float("nan"), least), r)
    r = tl.where(x == 0, least, r)
    r = tl.where(a == 0, tl.where(x > 0, 1.0 - least, float("nan")), r)
    return tl.where((a < 0) | (x < 0), float("nan"), r)


@triton.jit
def regularized_gamma_p(a, x):
    p, _ = regularized_gamma(*positive_or_one(a, x))
    return with_limits(p, a, x, 0.0)


@triton.jit
def regularized_gamma_q(a, x):
    _, q = regularized_gamma(*positive_or_one(a, x))
    return with_limits(q, a, x, 1.0)


@triton.jit
def positive_or_one(a, x):
    """Return (x, a), or (1, 1) unless both arguments are positive and finite."""
    known = (a > 0) & (a < float("inf")) & (x > 0) & (x < float("inf"))
    return tl.where(known, x, 1.0), tl.where(known, a, 1.0)
