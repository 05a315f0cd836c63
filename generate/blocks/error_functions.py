"""The complementary error function and its inverse, in fp32 and fp64.

Coefficients of series are of interpolation at 64 to 90 Chebyshev points in 45 digits, cut where they fall under 1e-18.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.functions import log1p


@triton.jit
def chebyshev_series(t, COEFFICIENTS: tl.constexpr):
    """The sum of c[k] T_k(t), t in [-1, 1], by Clenshaw's recurrence."""
    b, before = tl.zeros_like(t), tl.zeros_like(t)
    for k in tl.static_range(len(COEFFICIENTS) - 1, 0, -1):
        b, before = 2 * t * b - before + COEFFICIENTS[k], b
    return t * b - before + COEFFICIENTS[0]


@triton.jit
def exp_minus_square(x):
    """e^(-x^2): x^2 is the square of its leading bits, which is exact, and the rest (x - h) (x + h)."""
    if x.dtype.is_fp64():
        h = (x.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)
    else:
        h = (x.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)
    inside = tl.abs(x) < 40
    h = tl.where(inside, h, 0.0)
    r = tl.exp(h * h * -1.0) * tl.exp((h - x) * (h + x))
    return tl.where(inside, r, tl.where(x != x, x, 0.0))


@triton.jit
def scaled_erfc(x):
    """e^(x^2) erfc(x) for x >= 0.5: a series in (x - 3.75) / (x + 3.75), over 1 + 2 x (Shepherd, Laframboise)."""
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
def complementary_erf(x):
    """1 - erf(x), by the scaled function where |x| >= 0.5."""
    far = exp_minus_square(x) * scaled_erfc(tl.abs(x))
    r = tl.where(x < 0, 2 - far, far)
    return tl.where((tl.abs(x) < 0.5) | (x != x), 1 - tl.erf(x), r)


@triton.jit
def inverse_erf(size, rest):
    """y >= 0 with erf(y) = size and erfc(y) = rest = 1 - size: Winitzki's approximation and two steps of Halley's."""
    middle = size < 0.5
    log = tl.where(middle, log1p(-size * size), tl.log(rest * (1 + size)))
    t = 4.330746750799873 + 0.5 * log
    y = root(divide(log * -6.802721088435374, root(t * t - log * 6.802721088435374) + t))
    for _ in tl.static_range(3):
        error = tl.where(middle, tl.erf(y) - size, rest - complementary_erf(y))
        u = error * 0.8862269254527580 * divide(1.0 + tl.zeros_like(y), exp_minus_square(y))
        y = y - divide(u, 1 + y * u)
    r = tl.where(rest == 0, float("inf"), tl.where(size == 0, 0.0, y))
    return tl.where((size >= 0) & (rest >= 0), r, float("nan"))
