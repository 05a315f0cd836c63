"""Elementary functions that Triton's language lacks, in fp32 and fp64, and access to float parts."""

import triton
import triton.language as tl
from blocks.arithmetic import divide


@triton.jit
def is_negative(x):
    """Return True if the sign bit is set, also for a zero or a NaN; integers are compared with 0."""
    if x.dtype.is_fp64():
        negative = x.to(tl.int64, bitcast=True) < 0
    elif x.dtype.is_fp32():
        negative = x.to(tl.int32, bitcast=True) < 0
    else:
        negative = x < 0
    return negative


@triton.jit
def with_sign(size, x):
    """Return |size| with x's sign; both are floats."""
    return tl.where(is_negative(x), tl.abs(size) * -1.0, tl.abs(size))


@triton.jit
def toward_zero(x):
    """Return x rounded toward zero."""
    return tl.where(x < 0, tl.ceil(x), tl.floor(x))


@triton.jit
def to_nearest(x):
    """Round to the nearest whole number, halves to even; a zero result keeps the sign."""
    down = tl.floor(x)
    rest = x - down
    odd = down - 2 * tl.floor(down * 0.5) == 1
    r = tl.where((rest > 0.5) | ((rest == 0.5) & odd), down + 1, down)
    return tl.where(r == 0, x * 0, r)


@triton.jit
def exp2(x):
    """Return 2^x, including denormal results, which tl.exp2 flushes to 0 on GPUs.

    Small arguments use 2^(x + 64), scaled back.
    """
    small = x < -126
    return tl.exp2(tl.where(small, x + 64, x)) * tl.where(small, 5.421010862427522e-20, 1.0)


@triton.jit
def sin(x):
    """Return the sine, including denormal results, which tl.sin flushes to 0 on GPUs."""
    r = tl.sin(x)
    return tl.where(tl.abs(x) < 1e-4, x, r) if x.dtype.is_fp32() else r


@triton.jit
def expm1(x):
    """Return e^x - 1."""
    return expm1_fp64(x) if x.dtype.is_fp64() else expm1_fp32(x)


@triton.jit
def expm1_fp64(x):
    """Return e^x - 1 in fp64.

    With the rounded u = e^x it is (u - 1) x / log u, in which the errors cancel (Higham 2002, 1.14.1).
    """
    u = tl.exp(x)
    y = u - 1
    r = tl.where((tl.abs(x) < 1) & (u != 1), divide(y * x, tl.log(tl.where(u == 1, 2.0, u))), y)
    return tl.where(u == 1, x, r)


@triton.jit
def quarter_exp(x):
    """Return s and e in fp32 with e^x = 4 s (1 + e).

    s is a power of two and |e| < 1/2, unless e^x is 0 or infinite. If s is 1/4, e is e^x - 1.
    """
    x = tl.where(x > 89.7, 89.7, tl.where(x < -85.0, -85.0, x))
    shifted = x * 1.4426950408889634 + 12582912.0  # 3 * 2^22: the sum's last bits are the nearest whole number
    n = shifted - 12582912.0
    r = (x - n * 0.693145751953125) - n * 1.428606820309417e-06  # the first constant has 15 bits, so products are exact
    e = r * polynomial(r, (0.001393454193, 0.008369869754, 0.04166645681, 0.166664987, 0.5000000014, 1.000000011))
    # The exponent's bias is 127; two less make a quarter, so that s is finite where 4 s is not.
    s = ((shifted.to(tl.int32, bitcast=True) << 23) + (125 << 23)).to(tl.float32, bitcast=True)
    return s, e


@triton.jit
def expm1_fp32(x):
    """Return e^x - 1 in fp32."""
    s, e = quarter_exp(x)
    return tl.where(s == 0.25, e, 4 * tl.fma(s, e, s - 0.25))


@triton.jit
def log1p(x):
    """Return log(1 + x)."""
    return log1p_fp64(x) if x.dtype.is_fp64() else log1p_fp32(x)


@triton.jit
def log1p_fp64(x):
    """Return log(1 + x) in fp64.

    With the rounded u = 1 + x it is log u x / (u - 1), in which the errors cancel.
    """
    u = 1 + x
    d = u - 1
    r = tl.where(u == 1, x, tl.log(u) * divide(x, tl.where(d == 0, 1.0, d)))
    return tl.where(x == float("inf"), x, r)


@triton.jit
def log1p_fp32(x):
    """Return log(1 + x) in fp32."""
    k = log_exponent(1 + x)
    s = tl.maximum((127 - k) << 23, 0x200000).to(tl.float32, bitcast=True)  # 2^-k; 2^-128 is denormal
    r = log_of_parts(k, x * s - (1 - s))
    return tl.where(x > -1, tl.where(x < float("inf"), r, x), tl.where(x == -1, float("-inf"), float("nan")))


@triton.jit
def log_exponent(x):
    """Return k in fp32 with 2^k (1 + f) = x and 1 + f in [3/4, 3/2], for positive normal numbers."""
    # 0x3F400000 is 3/4: its subtraction moves the boundary between exponents from powers of two to 3/4 of them.
    return (x.to(tl.int32, bitcast=True) - 0x3F400000) >> 23


@triton.jit
def log_of_parts(k, f):
    """Return log(2^k (1 + f)) in fp32 with 1 + f in [3/4, 3/2]."""
    series = polynomial(
        f,
        (
            -0.04738242484,
            0.1062562921,
            -0.1312287691,
            0.1443845675,
            -0.1664764409,
            0.1999359251,
            -0.2500015388,
            0.3333339545,
            -0.499999998,
        ),
    )
    return f * (1 + f * series) - (0 - k).to(tl.float32) * 0.6931471805599453


@triton.jit
def log_of_normal(x):
    """Return log x in fp32 for positive normal numbers."""
    k = log_exponent(x)
    return log_of_parts(k, (x.to(tl.int32, bitcast=True) - (k << 23)).to(tl.float32, bitcast=True) - 1)


@triton.jit
def hyperbolic_tangent(x):
    """Return tanh x as (u - 1) / (u + 1) with u = e^(2 |x|) and the sign of x; fp32 uses an odd series up to 0.55."""
    size = tl.abs(x)
    if x.dtype.is_fp64():
        e = expm1(2 * size)
        r = tl.where(size > 20, 1.0, divide(e, e + 2))
    else:
        s = x * x
        near = polynomial(s, (-0.006610227831, 0.02130938866, -0.05390942883, 0.1333311373, -0.3333333201))
        r = tl.where(size < 0.55, size + size * s * near, 1 - 2 / (tl.exp(2 * size) + 1))
    return tl.where(x != x, x, with_sign(r, x))


@triton.jit
def polynomial(x, COEFFICIENTS: tl.constexpr):
    """Evaluate a polynomial by Horner's scheme; the highest power comes first."""
    r = tl.zeros_like(x) + COEFFICIENTS[0]
    for k in tl.static_range(1, len(COEFFICIENTS)):
        r = r * x + COEFFICIENTS[k]
    return r


@triton.jit
def folded_arcsine(x):
    """Return (|x| > 1/2, r) in fp32; asin |x| is pi / 2 - 2 r if the flag is set, else r."""
    a = tl.abs(x)
    far = a > 0.5
    s = tl.where(far, 0.5 - 0.5 * a, a * a)
    z = tl.where(far, tl.sqrt(s), a)
    series = polynomial(s, (0.03808502356, 0.02655454221, 0.04500138007, 0.07498855073, 0.1666667241))
    return far, z + z * s * series


@triton.jit
def arctangent(x):
    """Return the angle with tangent x."""
    return arctangent_fp64(x) if x.dtype.is_fp64() else arctangent_fp32(x)


@triton.jit
def arctangent_fp32(x):
    """Return the arctangent in fp32, reflected at pi / 4 to |x| <= 1."""
    a = tl.abs(x)
    r = unit_arctangent(tl.where(a > 1, 1 / a, a))
    return with_sign(tl.where(a > 1, 1.5707963267948966 - r, r), x)


@triton.jit
def unit_arctangent(z):
    """Return the arctangent in fp32 for 0 <= z <= 1."""
    s = z * z
    series = polynomial(
        s,
        (
            -0.002386997317,
            0.01350777143,
            -0.03587153898,
            0.06250169445,
            -0.0865688043,
            0.1103376412,
            -0.1427856875,
            0.1999973933,
            -0.3333333173,
        ),
    )
    return z + z * s * series


@triton.jit
def arctangent_fp64(x):
    """Return the arctangent in fp64.

    The argument is rotated by pi / 4 or pi / 2 to |x| <= tan(pi / 8), on which atan(x) / x is a Chebyshev
    polynomial in x^2.
    """
    a = tl.abs(x)
    far, mid = a > 2.414213562373095, a > 0.4142135623730951
    top = tl.where(far, -1.0, tl.where(mid, a - 1, a))
    z = divide(top, tl.where(far, a, tl.where(mid, a + 1, 1.0)))
    s = z * z
    series = polynomial(
        s,
        (
            -0.017803024570372427,
            0.037963116386953384,
            -0.05035019199400293,
            0.058468600441315986,
            -0.0666294933513016,
            0.07692045115329452,
            -0.09090896797060963,
            0.11111110744504495,
            -0.142857142792419,
            0.19999999999940807,
            -0.3333333333333312,
            1.0,
        ),
    )
    base = tl.where(far, 1.5707963267948966, tl.where(mid, 0.7853981633974483, tl.zeros_like(a)))
    rest = tl.where(far, 6.123233995736766e-17, tl.where(mid, 3.061616997868383e-17, tl.zeros_like(a)))
    return with_sign(base + (z * series + rest), x)


@triton.jit
def arctangent_of(y, x):
    """Return the angle of (x, y) in (-pi, pi], which follows both signs, also for zeros."""
    a, b = tl.abs(y), tl.abs(x)
    both = (a == float("inf")) & (b == float("inf"))
    steep = a > b
    low, high = tl.where(steep, b, a), tl.where(steep, a, b)
    high = tl.where(high == 0, 1.0, high)
    if x.dtype.is_fp64():
        angle = arctangent_fp64(tl.where(both, 1.0, low / high))
    else:
        angle = unit_arctangent(tl.where(both, 1.0, low / high))
    angle = tl.where(steep, 1.5707963267948966 - angle, angle)
    angle = tl.where(is_negative(x), 3.141592653589793 - angle, angle)
    return tl.where((x != x) | (y != y), float("nan"), with_sign(angle, y))


@triton.jit
def exponent_bits(x):
    """Return the biased exponent of a float."""
    DOUBLE: tl.constexpr = x.dtype.is_fp64()
    bits = x.to(tl.int64 if DOUBLE else tl.int32, bitcast=True)
    return (bits >> (52 if DOUBLE else 23)) & (0x7FF if DOUBLE else 0xFF)


@triton.jit
def rest_of(x, y):
    """Return the exact remainder of positive numbers with x < 2^21 y."""
    return tl.fma(whole_quotient(x, y) * -1.0, y, x)


@triton.jit
def near_quotient(a, b):
    """Return |a / b| approximately, the nearest whole number to it, and the rest of a, for magnitudes in fp32.

    The rest is exact for quotients from 1 to 2^18. For smaller quotients its sign is right, except that an
    infinite b gives NaN. A NaN quotient has a positive sign, so that its bits compare larger than any number's.
    """
    inverse = tl.rsqrt(b)  # its square takes fewer instructions than 1 / b
    q = a * (inverse * inverse)
    whole = (q + 12582912.0) - 12582912.0  # 3 * 2^22: the sum's last bits are the nearest whole number
    return tl.abs(q), whole, tl.fma(whole * -1.0, b + tl.zeros_like(q), a + tl.zeros_like(q))


@triton.jit
def short_rest(a, b):
    """Return the remainder of magnitudes in fp32, and their quotient, which must be less than 2^18.

    For a zero divisor the quotient is 0 and the remainder NaN. The rest after the nearest whole quotient is
    exact unless a < b, and it is either the remainder or negative. The rest and the rest plus b are compared as
    unsigned integers, in which a non-negative float is the smaller one.
    """
    q, _, left = near_quotient(a, b)
    least = tl.minimum(left.to(tl.uint32, bitcast=True), (left + b).to(tl.uint32, bitcast=True))
    return tl.where(a < b, a, least.to(tl.float32, bitcast=True)), tl.where(b > 0, q, 0)


@triton.jit
def long_rest(x, y):
    """Return the exact remainder of positive numbers by long division, 18 quotient bits per step; x may be NaN."""
    step = y
    while tl.max((x >= step * 262144.0).to(tl.int32), 0) > 0:
        step = tl.where(x >= step * 262144.0, step * 262144.0, step)
    while tl.max((x >= y).to(tl.int32), 0) > 0:
        x = tl.where(x >= step, rest_of(x, step), x)
        step = tl.maximum(step * 3.814697265625e-06, y)
    return x


@triton.jit
def exact_remainder(x, y):
    """Return x - trunc(x / y) y exactly, with x's sign.

    Quotients with at most 20 bits take one step, others a long division.
    """
    bad = (x != x) | (y != y) | (tl.abs(x) == float("inf")) | (y == 0)
    b = tl.where(bad, 1.0, tl.abs(y) + tl.zeros_like(x))
    r = tl.where(bad, 0.0, tl.abs(x) + tl.zeros_like(y))
    r = tl.where((r >= b) & (r < b * 1048576.0), rest_of(r, b), r)
    return tl.where(bad, float("nan"), with_sign(long_rest(r, b), x))


@triton.jit
def whole_quotient(x, y):
    """Return floor(x / y) for positive numbers with x < 2^21 y.

    A rounded division may be off by 1, which the sign or size of the remainder reveals.
    """
    whole = tl.floor(x / y)
    left = tl.fma(whole * -1.0, y, x)
    return tl.where(left < 0, whole - 1, tl.where(left >= y, whole + 1, whole))
