"""The logarithm of Gamma, its derivative (digamma), and Hurwitz's zeta, in fp32 and fp64.

The coefficients come from interpolation at 64 to 90 Chebyshev points with 45 digits, truncated below 1e-18.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.error_functions import chebyshev_series
from blocks.functions import exp2, log_exponent, log_of_parts, polynomial, to_nearest


@triton.jit
def log_gamma_factor(z):
    """Return log Gamma(z) / ((z - 1) (z - 2)) for z in [1, 3]."""
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
    """Return log Gamma(x) for x > 0.

    Up to 3 it is a series. Above, it adds the logarithm of (x - 1) (x - 2) ..., and from 10 on it is Stirling's
    series.
    """
    y, product = tl.where(x < 10, x, 2.0), tl.full(x.shape, 1, x.dtype)
    for _ in tl.static_range(7):  # from below 10 to at most 3
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
def log_gamma_fp64(x):
    """Return log |Gamma(x)| in fp64; for x < 0 as log(pi / |x sin(pi x)|) - log Gamma(-x)."""
    a = tl.abs(x)
    part = a - tl.floor(a)
    sine = tl.sin(3.141592653589793 * tl.where(part > 0.5, 1 - part, part))
    pole = (x <= 0) & (part == 0)
    above = log_gamma_above(tl.where(a > 0, a, 1.0))
    below = 1.1447298858494002 - tl.log(tl.where(pole, 1.0, a * sine)) - above
    r = tl.where(x < 0, below, above)
    return tl.where(x != x, x, tl.where(pole | (a == float("inf")), float("inf"), r))


@triton.jit
def circle(r):
    """Return sin(pi r) and |cos(pi r)| for |r| <= 1/2."""
    if r.dtype.is_fp64():
        sine, cosine = tl.sin(3.141592653589793 * r), tl.sin(3.141592653589793 * (0.5 - tl.abs(r)))
    else:
        half = 0.5 - tl.abs(r)
        sine, cosine = r * sine_series(r * r), half * sine_series(half * half)
    return sine, cosine


@triton.jit
def sine_series(s):
    """Return sin(pi r) / r in fp32 for s = r^2."""
    return polynomial(s, (0.07765591228, -0.5982904113, 2.550077387, -5.167710077, 3.14159264))


@triton.jit
def log_gamma_above_fp32(x):
    """Return log Gamma(x) in fp32 for x > 0.

    Up to 3 it is a series. Above, it adds the logarithm of (x - 1) (x - 2) (x - 3), and from 6 on it is
    Stirling's series.
    """
    far = x >= 6
    y, product = tl.where(far, 2.0, x), tl.full(x.shape, 1, x.dtype)
    for _ in tl.static_range(3):  # from below 6 to at most 3
        down = y > 3
        y = tl.where(down, y - 1, y)
        product = tl.where(down, product * y, product)
    low = y < 1
    log = tl.log(tl.where(far, x, tl.where(low, y, product)))
    v = tl.where(low, y - 1, y - 2)
    near = polynomial(v, (
        7.334844066e-05, -0.0001583338466, 0.000142624333, -0.0003204031966, 0.0009338880862, -0.002147659951,
        0.004995238859, -0.01237692854, 0.03296517265, -0.1003176689, 0.4227843351,
    ))  # fmt: skip
    near = near * (v + 1) * v + tl.where(low, log * -1.0, log)
    w = 1 / tl.where(far, x, 6.0)
    tail = ((w * w * 0.0007936507936507937 - 0.002777777777777778) * (w * w) + 0.08333333333333333) * w
    stirling = (x - 0.5) * log - x + 0.9189385332046727 + tail
    return tl.where(far, tl.where(x == float("inf"), x, stirling), near)


@triton.jit
def reciprocal_step(product, y):
    """Multiply the product by y and increase y by 1 if y < 1, because 1 / Gamma(y) = y / Gamma(y + 1)."""
    low = y < 1
    return tl.where(low, product * y, product), tl.where(low, y + 1, y)


@triton.jit
def log_gamma_below_fp32(x):
    """Return log |Gamma(x)| for -12 <= x < 0, from the reciprocal of Gamma.

    The reciprocal is x (x + 1) ... times a series on [1, 2], in fp64, so that the logarithm is accurate if it
    is close to 1.
    """
    product, y = reciprocal_step(tl.full(x.shape, 1, tl.float64), x.to(tl.float64))
    for _ in tl.static_range(4):
        product, y = reciprocal_step(product, y)
    # Five steps suffice from -4 on. The others run only if an element of the block needs them.
    if tl.max((y < 1).to(tl.int32), 0) > 0:
        for _ in tl.static_range(8):
            product, y = reciprocal_step(product, y)
    series = polynomial(y - 1.5, (
        -1.3847371752186156e-05, 2.6940900298472386e-05, 0.00015234317530833647, -0.0011111733645082402,
        0.002120733348005567, 0.006612955092708583, -0.04215516948118885, 0.050966856897629115,
        0.17510202604635897, -0.5266544354538125, -0.04117452644529153, 1.1283791670952636,
    ))  # fmt: skip
    reciprocal = tl.abs(product * series)
    k = log_exponent(reciprocal.to(tl.float32))
    scale = ((127 - k) << 23).to(tl.float32, bitcast=True)
    return log_of_parts(k, (reciprocal * scale.to(tl.float64) - 1).to(tl.float32)) * -1.0


@triton.jit
def log_gamma_fp32(x):
    """Return log |Gamma(x)| in fp32.

    Below -12 it is log(pi / |x sin(pi x)|) - log Gamma(-x), because no fp32 number is close to a zero there.
    """
    a = tl.abs(x)
    beside = (x < -1e-8) & (x >= -12)
    above = log_gamma_above_fp32(a)
    r = tl.where(beside, log_gamma_below_fp32(tl.where(beside, x, -0.5)), above)
    below = (x < -12) & (a < float("inf"))
    if tl.max(below.to(tl.int32), 0) > 0:
        sine, _ = circle(tl.where(below, x - to_nearest(x), 0.5))
        r = tl.where(below, 1.1447298858494002 - tl.log(a * tl.abs(sine)) - above, r)
    pole = (x <= 0) & (tl.floor(x) == x)
    return tl.where(pole | (a == float("inf")), float("inf"), r)


@triton.jit
def log_gamma(x):
    """Return log |Gamma(x)|."""
    return log_gamma_fp64(x) if x.dtype.is_fp64() else log_gamma_fp32(x)


@triton.jit
def digamma_fp64(x):
    """Return digamma in fp64: reflected below 0, shifted above 10, then an asymptotic series."""
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
def digamma_fp32(x):
    """Return digamma in fp32.

    It is reflected below 0, shifted above 6 by a sum of reciprocals held as one fraction, then an asymptotic
    series.
    """
    part = x - to_nearest(x)
    y = tl.where(x < 0, 1 - x, x)
    y = tl.where((y > 0) & (y < float("inf")), y, 6.0)
    top, below = tl.zeros_like(y), tl.full(y.shape, 1, y.dtype)
    for _ in tl.static_range(6):
        small = y < 6
        top = tl.where(small, top * y + below, top)
        below = tl.where(small, below * y, below)
        y = tl.where(small, y + 1, y)
    w = 1 / y
    s = w * w
    tail = ((s * -0.004166666666666667 + 0.003968253968253968) * s - 0.008333333333333333) * s + 0.08333333333333333
    r = tl.log(y) - 0.5 * w - tail * s - top / below
    sine, cosine = circle(part)
    r = tl.where(x < 0, r - 3.141592653589793 * cosine / sine, r)
    r = tl.where(x == 0, divide(-1.0 + tl.zeros_like(x), x), r)
    r = tl.where(x == float("inf"), x, r)
    return tl.where((x != x) | ((x < 0) & (part == 0)) | (x == float("-inf")), float("nan"), r)


@triton.jit
def digamma(x):
    """Return Gamma's logarithmic derivative."""
    return digamma_fp64(x) if x.dtype.is_fp64() else digamma_fp32(x)


@triton.jit
def power_below(a, x):
    """Return a^-x; for a negative a, x must be a whole number."""
    r = exp2(-x * tl.log2(tl.abs(a)))
    odd = x - 2 * tl.floor(0.5 * x) == 1
    return tl.where((a < 0) & odd, -r, r)


@triton.jit
def hurwitz_zeta(x, q):
    """Return the sum of (k + q)^-x for k from 0 on.

    The sum has at least nine terms in fp64, up to k + q > 9, and four in fp32, up to 4. Then follows the
    Euler-Maclaurin series.
    """
    LEAST: tl.constexpr = 9 if q.dtype.is_fp64() else 4
    x, q = x + tl.zeros_like(q), q + tl.zeros_like(x)
    whole = tl.floor(q) == q
    below = (x < 1) | ((q <= 0) & ~whole & (tl.floor(x) != x))
    endless = (x == 1) | (~(x < 1) & (q <= 0) & whole)
    out = below | endless | (x != x) | (q != q)
    lost = out & ~endless
    x, a = tl.where(out, 2.0, tl.minimum(x, 1e30)), tl.where(out, 1.0, q)  # 1^-inf is 1
    b = power_below(a, x)
    s = b
    for _ in tl.static_range(LEAST):
        a += 1
        b = power_below(a, x)
        s += b
    while tl.max((a <= LEAST).to(tl.int32), 0) > 0:
        more = a <= LEAST
        a = tl.where(more, a + 1, a)
        b = tl.where(more, power_below(a, x), b)
        s = tl.where(more, s + b, s)
    s += divide(b * a, x - 1) - 0.5 * b
    shares: tl.constexpr = (
        0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
        2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11,
    )  # fmt: skip
    factor, w = x, 1 / a
    for i in tl.static_range(7):
        b *= w
        s += tl.where(b == 0, 0.0, factor * b * shares[i])  # the factor may be infinite
        factor *= (x + (2 * i + 1)) * (x + (2 * i + 2))
        b *= w
    lost = lost | ((s == 0) & (x > 6.8e12))  # ATen is NaN there: x^24 in its series exceeds fp64
    r = tl.where(endless, float("inf"), s)
    return tl.where(lost, float("nan"), r)
