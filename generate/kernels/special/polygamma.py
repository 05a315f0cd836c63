"""aten::polygamma(int n, Tensor self) -> Tensor

Computes the n-th derivative of digamma, (-1)^(n + 1) * n! * zeta(n + 1, x). For n = 1, x < 1/2 is reflected.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import polynomial, to_nearest
from blocks.gamma import circle, digamma, hurwitz_zeta

OVERLOADS = ("aten::polygamma",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def polygamma(x, n, sign, factorial):
    return sign * factorial * hurwitz_zeta(n + 1, x)


@triton.jit
def trigamma(x):
    """Return the first derivative of digamma.

    Arguments below 1/2 are reflected. A sum of inverse squares then moves the argument to at least 10 (5 in
    fp32), and an asymptotic series follows.
    """
    LEAST: tl.constexpr = 10 if x.dtype.is_fp64() else 5
    y = tl.where(x < 0.5, 1 - x, x)
    total = tl.zeros_like(y)
    for _ in tl.static_range(LEAST):
        w = 1 / y
        total = tl.where(y < LEAST, total + w * w, total)
        y = tl.where(y < LEAST, y + 1, y)
    w = 1 / y
    s = w * w
    tail = polynomial(s, (
        1.1666666666666667, -0.2531135531135531, 0.07575757575757576, -0.03333333333333333, 0.023809523809523808,
        -0.03333333333333333, 0.16666666666666666,
    ))  # fmt: skip
    above = total + (w + s * (0.5 + w * tail))
    part = x - to_nearest(x)
    sine, _ = circle(part)
    r = tl.where(x < 0.5, 9.869604401089358 / (sine * sine) - above, above)
    return tl.where(x == float("inf"), 0.0, r)


def wrapper(n, self, *, out=None):
    if n < 0:
        raise RuntimeError(f"polygamma needs n >= 0, got {n}")
    if n == 0:
        return elementwise(digamma, self, to_float=True, out=out)
    if n == 1:
        return elementwise(trigamma, self, to_float=True, out=out)
    factorial = 1
    for k in range(2, n + 1):
        factorial *= k
    numbers = n, 1 if n % 2 else -1, factorial
    return elementwise(polygamma, self, numbers=numbers, to_float=True, out=out)
