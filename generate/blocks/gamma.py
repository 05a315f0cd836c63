"""Gamma's logarithm, its derivative and Hurwitz's zeta, in fp32 and fp64.

Coefficients of series are of interpolation at 64 to 90 Chebyshev points in 45 digits, cut where they fall under 1e-18.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.error_functions import chebyshev_series
from blocks.functions import to_nearest


@triton.jit
def log_gamma_factor(z):
    """log Gamma(z) / ((z - 1) (z - 2)), z in [1, 3]."""
    return chebyshev_series(z - 2, (
        0.44148902545501423, -0.11119580321752523, 0.01951044826068884, -0.003922461463025264,
        0.0008478989895953857, -0.00019153855341365593, 4.454470184975607e-05, -1.05728743735943e-05,
        2.5474336873408417e-06, -6.208535880776316e-07, 1.5268677399071546e-07, -3.782637660291326e-08,
        9.428100823624284e-09, -2.361999702184645e-09, 5.943541905817546e-10, -1.501312977072867e-10,
        3.8050196458110534e-11, -9.672485299656325e-12, 2.465348198355661e-12, -6.298868140791711e-13,
        1.6128460030283787e-13, -4.137949206814042e-14, 1.0635701227757898e-14, -2.7382420786652826e-15,
        7.060670507214892e-16, -1.8232177141662118e-16, 4.714169006756272e-17, -1.2204107319639856e-17,
        3.1630451661790255e-18, -8.206746544166728e-19,
    ))  # fmt: skip


@triton.jit
def log_gamma_above(x):
    """log Gamma(x), x > 0: a series to 3, products of x - 1, x - 2 ... above, Stirling's series from 10 on."""
    y, product = tl.where(x < 10, x, 2.0), tl.full(x.shape, 1, x.dtype)
    for _ in tl.static_range(7):
        down = y > 3
        y = tl.where(down, y - 1, y)
        product = tl.where(down, product * y, product)
    low = y < 1
    z = tl.where(low, y + 1, y)
    near = log_gamma_factor(z)
    near = near * (z - 1) * (z - 2) + tl.log(product) - tl.where(low, tl.log(tl.where(low, y, 1.0)), 0.0)
    b = tl.where(x < 10, 10.0, x)
    w = 1 / b
    s = w * w
    tail = ((s * 0.0064102564102564 - 0.0019175269175269176) * s + 0.0008417508417508417) * s - 0.0005952380952380953
    tail = ((tail * s + 0.0007936507936507937) * s - 0.002777777777777778) * s + 0.08333333333333333
    far = (b - 0.5) * tl.log(b) - b + 0.9189385332046727 + tail * w
    return tl.where(x < 10, near, tl.where(x == float("inf"), x, far))


@triton.jit
def log_gamma(x):
    """log |Gamma(x)|; where x < 0 by log(pi / |x sin(pi x)|) - log Gamma(-x)."""
    a = tl.abs(x)
    part = a - tl.floor(a)
    sine = tl.sin(3.141592653589793 * tl.where(part > 0.5, 1 - part, part))
    pole = (x <= 0) & (part == 0)
    above = log_gamma_above(tl.where(a > 0, a, 1.0))
    below = 1.1447298858494002 - tl.log(tl.where(pole, 1.0, a * sine)) - above
    r = tl.where(x < 0, below, above)
    return tl.where(x != x, x, tl.where(pole | (a == float("inf")), float("inf"), r))


@triton.jit
def digamma(x):
    """The logarithmic derivative of Gamma: reflected below 0, moved above 10, and an asymptotic series."""
    part = x - to_nearest(x)
    pole = (x < 0) & (part == 0)
    y = tl.where(x < 0, 1 - x, x)
    y = tl.where((y > 0) & (y < float("inf")), y, 10.0)
    total = tl.zeros_like(y)
    for _ in tl.static_range(10):
        small = y < 10
        total = tl.where(small, total - 1 / y, total)
        y = tl.where(small, y + 1, y)
    s = 1 / (y * y)
    tail = ((s * 0.08333333333333333 - 0.021092796092796094) * s + 0.007575757575757576) * s - 0.004166666666666667
    tail = ((tail * s + 0.003968253968253968) * s - 0.008333333333333333) * s + 0.08333333333333333
    r = total + (tl.log(y) - 0.5 / y - tail * s)
    angle = 3.141592653589793 * tl.where(pole, 0.25, part)
    r = tl.where(x < 0, r - divide(3.141592653589793 * tl.cos(angle), tl.sin(angle)), r)
    r = tl.where(x == 0, divide(-1.0 + tl.zeros_like(x), x), r)
    r = tl.where(x == float("inf"), x, r)
    return tl.where((x != x) | pole | (x == float("-inf")), float("nan"), r)


@triton.jit
def power_below(a, x):
    """a^-x; of a negative a x is a whole number."""
    r = tl.exp2(-x * tl.log2(tl.abs(a)))
    odd = x - 2 * tl.floor(0.5 * x) == 1
    return tl.where((a < 0) & odd, -r, r)


@triton.jit
def hurwitz_zeta(x, q):
    """The sum of (k + q)^-x from k = 0 on: at least nine terms, to k + q > 9, and Euler and Maclaurin's series."""
    x, q = x + tl.zeros_like(q), q + tl.zeros_like(x)
    whole = tl.floor(q) == q
    below = (x < 1) | ((q <= 0) & ~whole & (tl.floor(x) != x))
    endless = (x == 1) | (~(x < 1) & (q <= 0) & whole)
    out = below | endless | (x != x) | (q != q)
    lost = out & ~endless
    x, a = tl.where(out, 2.0, x), tl.where(out, 1.0, q)
    b = power_below(a, x)
    s = b
    for _ in tl.static_range(9):
        a += 1
        b = power_below(a, x)
        s += b
    while tl.max((a <= 9).to(tl.int32), 0) > 0:
        more = a <= 9
        a = tl.where(more, a + 1, a)
        b = tl.where(more, power_below(a, x), b)
        s = tl.where(more, s + b, s)
    s += divide(b * a, x - 1) - 0.5 * b
    terms: tl.constexpr = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1892437580.3183791, 74724249600.0)
    factor, k = x, 0
    for i in tl.static_range(7):
        b = divide(b, a)
        s += factor * b / terms[i]
        factor *= (x + (k + 1)) * (x + (k + 2))
        b = divide(b, a)
        k += 2
    r = tl.where(endless, float("inf"), s)
    return tl.where(lost, float("nan"), r)
