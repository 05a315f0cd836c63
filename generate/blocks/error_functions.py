"""The complementary error function and its inverse, in fp32 and fp64, and sums of Chebyshev series.

The coefficients of the series come from interpolation at 64 to 90 Chebyshev points with 45 digits, truncated
below 1e-18.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.functions import log1p, log_of_normal, polynomial, quarter_exp


@triton.jit
def chebyshev_series(t, COEFFICIENTS: tl.constexpr, SINGLE: tl.constexpr = 1000):
    """Return the sum of c[k] T_k(t) for t in [-1, 1], by Clenshaw's recurrence; fp32 uses the first SINGLE terms."""
    TERMS: tl.constexpr = len(COEFFICIENTS) if t.dtype.is_fp64() or len(COEFFICIENTS) < SINGLE else SINGLE
    b, before = tl.zeros_like(t), tl.zeros_like(t)
    for k in tl.static_range(TERMS - 1, 0, -1):
        b, before = 2 * t * b - before + COEFFICIENTS[k], b
    return t * b - before + COEFFICIENTS[0]


@triton.jit
def exp_minus_square_fp64(x):
    """Return e^(-x^2) in fp64.

    x^2 is split into the square of its leading bits h, which is exact, and the rest (x - h) (x + h).
    """
    # Without its last 27 bits, h has 26 significant ones, so its square fits into 53.
    h = (x.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)
    inside = tl.abs(x) < 40  # e^-1600 is 0, and an infinite x would give NaN
    h = tl.where(inside, h, 0.0)
    r = tl.exp(h * h * -1.0) * tl.exp((h - x) * (h + x))
    return tl.where(inside, r, tl.where(x != x, x, 0.0))


@triton.jit
def exp_minus_square_fp32(x):
    """Return e^(-x^2) in fp32.

    It is the square of e^(-h^2 / 2) times e^((h - x) (h + x)). h holds the leading bits of x, so that h^2 is
    exact.
    """
    a = tl.abs(x)
    a = tl.where(a > 14, 14.0, a)  # e^-196 is 0 in fp32
    # Without its last 12 bits, h has 12 significant ones, so its square fits into 24.
    h = (a.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)
    power, e = quarter_exp(h * h * -0.5)
    rest = (h - a) * (h + a)
    half = 4 * (power + power * e)
    return half * (half * polynomial(rest, (0.041666666666666664, 0.16666666666666666, 0.5, 1.0, 1.0)))


@triton.jit
def exp_minus_square(x):
    """Return e^(-x^2)."""
    return exp_minus_square_fp64(x) if x.dtype.is_fp64() else exp_minus_square_fp32(x)


@triton.jit
def scaled_erfc_fp64(x):
    """Return e^(x^2) erfc(x) in fp64: a series in (x - 3.75) / (x + 3.75) over 1 + 2 x (Shepherd, Laframboise)."""
    x = tl.where(x >= 0.5, x, 0.5)
    t = tl.where(x == float("inf"), 1.0, divide(x - 3.75, x + 3.75))
    series = chebyshev_series((t + 0.7647058823529411) * 1.1333333333333333 - 1, (
        1.209553534186438, -0.07449995301009735, -0.01989843161011852, 0.019905393893364882,
        -0.009002331393380927, 0.002942133407309639, -0.0007508778230431329, 0.00014982479112138588,
        -2.203123465593649e-05, 1.8855545928961664e-06, 6.06072955967397e-08, -4.563538388649845e-08,
        5.162357979172992e-09, 3.4722196625334224e-10, -1.5752684361370038e-10, 7.129201208178608e-12,
        3.3790897881497812e-12, -4.4406525964907303e-13, -6.436254500844328e-14, 1.6260781460852645e-14,
        1.16900926935322e-15, -5.415554272876374e-16, -2.1849888490965635e-17, 1.8089194109630195e-17,
    ))  # fmt: skip
    return divide(series, 1 + 2 * x)


@triton.jit
def scaled_erfc_fp32(x):
    """Return e^(x^2) erfc(x) in fp32: a series in (x - 3) / (x + 3) over 1 + 2 x."""
    series = polynomial(1 - 6 / (x + 3), (
        -0.000630258102, 0.001757153981, 0.002451025285, -0.02371247019, 0.06832984137, -0.1192835915,
        0.1296421447, -0.0475617998, -0.1356209737, 1.253008057,
    ))  # fmt: skip
    return 0.5 * series / (0.5 + x)


@triton.jit
def scaled_erfc(x):
    """Return e^(x^2) erfc(x) for x >= 0.5."""
    return scaled_erfc_fp64(x) if x.dtype.is_fp64() else scaled_erfc_fp32(x)


@triton.jit
def erf_near(x):
    """Return erf(x) for |x| <= 0.5."""
    if x.dtype.is_fp64():
        r = tl.erf(x)
    else:
        r = x * polynomial(x * x, (0.004719082567, -0.02675773274, 0.1128283143, -0.3761260901, 1.128379166))
    return r


@triton.jit
def complementary_erf(x):
    """Return 1 - erf(x), by the scaled function if |x| >= 0.5."""
    far = exp_minus_square(x) * scaled_erfc(tl.abs(x))
    r = tl.where(x < 0, 2 - far, far)
    return tl.where((tl.abs(x) < 0.5) | (x != x), 1 - erf_near(x), r)


@triton.jit
def inverse_erf(size, rest):
    """Return y >= 0 with erf(y) = size and erfc(y) = rest = 1 - size; in fp32 for rest >= 2^-24, or 0."""
    return inverse_erf_by_steps(size, rest) if size.dtype.is_fp64() else inverse_erf_fp32(size, rest)


@triton.jit
def inverse_erf_fp32(size, rest):
    """Return the inverse in fp32: size times a series in w = -log(1 - size^2), and in sqrt(w) beyond w = 5."""
    w = log_of_normal(rest * (1 + size)) * -1.0
    near = polynomial(w - 2.5, (
        2.260597774e-08, 3.42224709e-07, -3.454779514e-06, -4.380346714e-06, 0.0002183129798, -0.001253758885,
        -0.004177346517, 0.2466407663, 1.501409351,
    ))  # fmt: skip
    far = polynomial(tl.sqrt(w) - 3, (
        -0.0001293368044, 4.428598572e-05, 0.001260280387, -0.003613809721, 0.005776520539, -0.007640052045,
        0.009433599879, 1.001675347, 2.832977045,
    ))  # fmt: skip
    r = size * tl.where(w < 5, near, far)
    return tl.where((size >= 0) & (rest > 0), r, tl.where(rest == 0, float("inf"), float("nan")))


@triton.jit
def inverse_erf_by_steps(size, rest):
    """Return the inverse by Winitzki's approximation and three Halley steps."""
    middle = size < 0.5
    log = tl.where(middle, log1p(-size * size), tl.log(rest * (1 + size)))
    t = 4.330746750799873 + 0.5 * log
    y = root(divide(log * -6.802721088435374, root(t * t - log * 6.802721088435374) + t))
    for _ in tl.static_range(3):
        error = tl.where(middle, tl.erf(y) - size, rest - complementary_erf(y))
        u = divide(error * 0.8862269254527580, exp_minus_square(y))
        y = y - divide(u, 1 + y * u)
    r = tl.where(rest == 0, float("inf"), tl.where(size == 0, 0.0, y))
    return tl.where((size >= 0) & (rest >= 0), r, float("nan"))


@triton.jit
def normal_distribution(x):
    """Return Phi(x) and e^(-x^2 / 2) in fp32, accurate enough for 16-bit results.

    The smaller tail has a relative error of 2^-21 for |x| <= 1.5, and of 2^-15 everywhere. Phi(-|x|) e^(x^2 /
    2) is a polynomial in t = 1 / (1 + p |x|) (the form is Hastings', 1955). The coefficients minimize the
    relative error over |x| <= 20, weighted by 64 up to 1.5, by reweighted least squares at 6,002 points.
    """
    t = 1 / (1 + 0.3505454545 * tl.abs(x))
    power = tl.exp2(x * x * -0.7213475204444817)
    tail = power * t * polynomial(t, (
        0.04515521687, -0.1854954543, 0.2109151927, 0.009275052818, 0.142962967, 0.1372065391, 0.139980541,
    ))  # fmt: skip
    return tl.where(x < 0, tail, 1 - tail), power
