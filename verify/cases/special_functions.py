"""Special functions in float64, from their definitions, for which ATen's CPU error (torch 2.13) far exceeds rounding.

Incomplete gamma functions: ATen's error reaches 4e-10 if a > 20 and x is near a, and exceeds Q itself for tiny
a. Here P is a power series for x <= a, and Q a continued fraction for x > a (DLMF 8.7.1, 8.9.2). Beyond a = 1e4
both converge slowly, so three terms in the uniform expansion replace them near x = a (DLMF 8.12.8).

Bessel functions: ATen's error reaches 3e-7. Here J_n is the mean over t for cos(n t - x sin t), and Y_n a sum
over such means (DLMF 10.9.2, 10.23.15). The trapezoidal rule computes them, with error J_N(x) for N
nodes. Beyond x = 25, Hankel's expansions are used (DLMF 10.17.3, 10.17.4).

Airy function Ai: ATen's error reaches 2e-5. From -10 to 10 this module uses Taylor's series about the nearest
multiple of 1/4, from the differential equation y'' = x y (DLMF 9.2.1). The values there come from Maclaurin's
series (DLMF 9.4.1, 9.4.3) in integer arithmetic. Outside that range it uses the asymptotic expansions (DLMF
9.7.5, 9.7.9), with exponent and phase in integer arithmetic. There is no answer below x = -1e10, because one
float64 rounding of x moves the phase by a tenth.

Trigamma (polygamma with order 1): at its poles ATen returns the rounding remainder of (pi / sin(pi x))^2,
between 1e13 in float32 and 1e33 in float64. Here it is infinite (DLMF 5.15.6).

Special values follow ATen: Bessel and Airy functions return NaN at infinities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Array = npt.NDArray[np.float64]

_NODES = 128  # nodes in the trapezoidal rule, for x <= 25
_EULER = 0.5772156649015329
_BITS = 256  # fractional bits in the fixed-point integers
_AIRY = "0.35502805388781723926006318600418317639797917419917724058332651030081004245"  # DLMF 9.2.3
_AIRY_SLOPE = "-0.25881940379280679840518356018920396347909113835493458221000181385610277267"  # DLMF 9.2.4
_FARTHEST = 1e10


def regularized_gamma(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    """Return P(a, x), or Q(a, x) if `upper`, in the promoted dtype."""
    broadcast: Sequence[Tensor] = torch.broadcast_tensors(a.double(), x.double())  # type: ignore[no-untyped-call]
    op = torch.ops.aten.igammac.default if upper else torch.ops.aten.igamma.default
    result: Tensor = op(a, x)
    native: Tensor = op(*broadcast)  # also supplies the special values
    operands = [t.numpy().reshape(-1) for t in broadcast]
    plain = (operands[0] > 0) & (operands[1] > 0) & np.isfinite(operands[0]) & np.isfinite(operands[1])
    values = native.numpy().reshape(-1).copy()
    with np.errstate(all="ignore"):
        values[plain] = _gamma_ratio(operands[0][plain], operands[1][plain])[int(upper)]
    result.copy_(torch.from_numpy(values).view(result.shape))
    return result


def _gamma_ratio(a: Array, x: Array) -> tuple[Array, Array]:
    """Return P and Q for positive numbers."""
    p, q = np.empty_like(a), np.empty_like(a)
    small = (a < 1) & (x <= 1.1)
    even = (a > 1e4) & (np.abs(x - a) < 0.1 * a)
    below, above = (x <= a) & ~small & ~even, (x > a) & ~small & ~even
    p[small], q[small] = _small(a[small], x[small])
    p[even], q[even] = _uniform(a[even], x[even])
    p[below] = _scale(a[below], x[below]) * _series(a[below], x[below])
    q[above] = _scale(a[above], x[above]) * a[above] * _fraction(a[above], x[above])
    p[above], q[below] = 1 - q[above], 1 - p[below]
    return p, q


def _log_gamma_1p(a: Array) -> Array:
    """Return log Gamma(1 + a) for 0 < a < 1, by the series in a if a < 0.5 (DLMF 5.7.3)."""
    near = np.minimum(a, 0.5)
    total = -_EULER * near
    for k in range(2, 60):
        total += float(torch.special.zeta(torch.tensor(k, dtype=torch.float64), 1)) / k * (-near) ** k
    return np.where(a < 0.5, total, torch.lgamma(torch.from_numpy(1 + a)).numpy())


def _small(a: Array, x: Array) -> tuple[Array, Array]:
    """Return P and Q by the series with alternating signs."""
    power = a * np.log(x) - _log_gamma_1p(a)
    term, total = np.ones_like(a), np.zeros_like(a)
    for k in range(1, 25):
        term = term * -x / k
        total += term / (a + k)
    rest = np.exp(power) * a * total
    return np.exp(power) + rest, -np.expm1(power) - rest


def _excess(a: Array, x: Array) -> Array:
    """Return x / a - 1 - log(x / a), by a series near x = a to avoid cancellation."""
    m = (x - a) / a
    s = np.where(np.abs(m) < 0.3, m / (2 + m), 0.0)
    series = sum((s ** (2 * k) / (2 * k + 1) for k in range(1, 18)), np.zeros_like(s))
    return np.asarray(np.where(np.abs(m) < 0.3, s * m - 2 * s * series, m - np.log(x / a)))


def _scale(a: Array, x: Array) -> Array:
    """Return x^a e^-x / Gamma(a + 1), by Stirling's series for large a."""
    b = np.maximum(a, 10.0)
    w = 1 / b
    log = w * (1 / 12 - w**2 * (1 / 360 - w**2 * (1 / 1260 - w**2 * (1 / 1680 - w**2 * (1 / 1188 - w**2 / 520)))))
    direct = np.exp(-b * _excess(b, x) - log) / np.sqrt(2 * math.pi * b)
    gamma = np.array([math.gamma(value + 1) for value in np.minimum(a, 10.0)])
    return np.asarray(np.where(a < 10, np.exp(a * np.log(x) - x) / gamma, direct))


def _series(a: Array, x: Array) -> Array:
    term, total = np.ones_like(a), np.ones_like(a)
    k = 1
    while bool(np.any(term > 1e-18 * total)):
        term = term * (x / (a + k))
        total += term
        k += 1
    return total


def _fraction(a: Array, x: Array) -> Array:
    """Return the continued fraction by Steed's algorithm. Elements whose scale is 0 anyway are skipped."""
    vanishes = _scale(a, x) == 0
    a, x = np.where(vanishes, 1.0, a), np.where(vanishes, 100.0, x)
    b = x + 1 - a
    d = 1 / b
    step, total, k = d, d.copy(), 1
    while bool(np.any(np.abs(step) > 1e-17 * np.abs(total))) and k < 20000:
        b = b + 2
        d = 1 / (b + k * (a - k) * d)
        step = (b * d - 1) * step
        total += step
        k += 1
    return total


def _uniform(a: Array, x: Array) -> tuple[Array, Array]:
    """Return P and Q by three terms in the uniform expansion (DLMF 8.12.8, 8.12.10).

    The terms are series in eta near x = a.
    """
    half = _excess(a, x)
    eta = np.sign(x - a) * np.sqrt(2 * half)
    first = -1 / 3 + eta * (1 / 12 - eta * (2 / 135 - eta * (1 / 864 + eta * (1 / 2835 - eta * 139 / 777600))))
    second = -1 / 540 - eta * (1 / 288 - eta * (0.0026455026455026455 - eta * 0.0009902263374485597))
    third = 25 / 6048 - eta * 0.0026813271604938272
    rest = np.exp(-a * half) * (first + (second + third / a) / a) / np.sqrt(2 * math.pi * a)
    tail = torch.special.erfc(torch.from_numpy(np.sqrt(a * half))).numpy() / 2
    p = np.where(eta < 0, tail, 1 - tail) - rest
    return p, np.where(eta < 0, 1 - tail, tail) + rest


def bessel(x: Tensor, order: int, second: bool) -> Tensor:
    """Return the Bessel function J, or Y if `second`, with order 0 or 1."""
    names = ("special_bessel_y0", "special_bessel_y1") if second else ("special_bessel_j0", "special_bessel_j1")
    op = getattr(torch.ops.aten, names[order]).default
    result: Tensor = op(x)
    wide = x.to(torch.float64)
    inputs, outputs = wide.numpy().reshape(-1), op(wide).numpy().reshape(-1).copy()
    plain = np.isfinite(inputs) & (inputs != 0) & ((inputs > 0) | (not second))
    size = np.abs(inputs[plain])
    is_small, value = size <= 25, np.empty_like(size)
    with np.errstate(all="ignore"):
        value[is_small] = _mean(size[is_small], order, second)
        value[~is_small] = _hankel(size[~is_small], order, second)
        outputs[plain] = np.where((inputs[plain] < 0) & (order == 1), -value, value)
    result.copy_(torch.from_numpy(outputs).view(result.shape))
    return result


def _mean(x: Array, order: int, second: bool) -> Array:
    """Return J or Y by the trapezoidal rule.

    Symmetry reduces the nodes to a quarter period.
    """
    even, weighted = np.zeros_like(x), np.zeros_like(x)
    other = np.zeros_like(x)
    count = _NODES // 4
    for k in range(count + 1):
        t = math.pi / 2 * k / count
        share = (0.5 if k in (0, count) else 1.0) / count
        wave = np.sin(x * math.sin(t)) if order else np.cos(x * math.sin(t))
        even += share * wave * (math.sin(t) if order else 1.0)
        weighted += share * wave * _neumann(t, order)
        other += share * np.cos(x * math.sin(t))
    if not second:
        return even
    log = np.log(x / 2) + _EULER
    if order:
        return np.asarray((-other * 2 / x + 2 * (log - 1) * even - 2 * weighted) / math.pi)
    return np.asarray((2 * log * even - 4 * weighted) / math.pi)


def _neumann(t: float, order: int) -> float:
    """Return the weight for cos or sin of x sin t in Neumann's series.

    The terms run over J_2k or J_(2k + 1), up to the last k at which they are significant for x <= 25.
    """
    if order:
        return math.fsum((-1) ** k * (2 * k + 1) / (k * (k + 1)) * math.sin((2 * k + 1) * t) for k in range(1, 32))
    return math.fsum((-1) ** k / k * math.cos(2 * k * t) for k in range(1, 32))


def _hankel(x: Array, order: int, second: bool) -> Array:
    """Return J or Y by Hankel's expansions P and Q. The phase comes from the sine and cosine of x itself."""
    term = np.ones_like(x)
    sums = [np.ones_like(x), np.zeros_like(x)]
    for k in range(1, 31):
        term = term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * x)
        sums[k % 2] += term if k % 4 < 2 else -term
    cos, sin = np.cos(x), np.sin(x)
    # Cosine and sine of the phase, times sqrt(2).
    phase = ((sin - cos), -(sin + cos)) if order else ((cos + sin), (sin - cos))
    first, last = (phase[1], phase[0]) if second else (phase[0], -phase[1])
    return np.asarray((sums[0] * first + sums[1] * last) / np.sqrt(math.pi) / np.sqrt(x))


def polygamma(n: int, x: Tensor) -> Tensor:
    """Return the n-th derivative of digamma."""
    result: Tensor = torch.ops.aten.polygamma.default(n, x)
    if n == 1:
        wide = x.to(torch.float64)
        result[(wide <= 0) & (wide == wide.floor()) & wide.isfinite()] = math.inf
    return result


def airy(x: Tensor) -> Tensor:
    """Return Ai.

    Raises:
        NotImplementedError: An argument lies below -1e10, so float64 cannot determine the phase.
    """
    op = torch.ops.aten.special_airy_ai.default
    result: Tensor = op(x)
    wide = x.to(torch.float64)
    inputs, outputs = wide.numpy().reshape(-1), op(wide).numpy().reshape(-1).copy()
    plain = np.isfinite(inputs)
    if bool(np.any(inputs[plain] < -_FARTHEST)):
        raise NotImplementedError("the phase of so large a number is not laid down")
    numbers = inputs[plain]
    is_near, value = np.abs(numbers) <= 10, np.zeros_like(numbers)
    value[is_near] = _taylor(numbers[is_near])
    for sign in (1, -1):
        beyond = (sign * numbers > 10) & (numbers < 200)
        value[beyond] = _airy_expansion(np.abs(numbers[beyond]), sign)
    outputs[plain] = value
    result.copy_(torch.from_numpy(outputs).view(result.shape))
    return result


def _taylor(x: Array) -> Array:
    places, index = np.unique(np.round(4 * x), return_inverse=True)
    c = places[index] / 4
    values = np.array([_maclaurin(int(center)) for center in places]).reshape(-1, 2)[index]
    h, terms = x - c, [values[:, 0], values[:, 1]]
    terms.append(c * terms[0] / 2)
    for n in range(1, 20):
        terms.append((c * terms[n] + terms[n - 1]) / ((n + 1) * (n + 2)))
    total = np.zeros_like(x)
    for term in reversed(terms):
        total = total * h + term
    return total


@cache
def _maclaurin(quarters: int) -> tuple[float, float]:
    """Return Ai and its derivative at a multiple of 1/4."""
    value, slope = (int(Fraction(text) * 2**_BITS) for text in (_AIRY, _AIRY_SLOPE))
    terms, slopes = [value, slope * quarters // 4, 0], [slope]
    for n in range(1, 200):  # the term with x^(n + 2) follows from the term with x^(n - 1), times x^3
        terms.append(terms[n - 1] * quarters**3 // (64 * (n + 1) * (n + 2)))
    if quarters:
        slopes = [n * term * 4 // quarters for n, term in enumerate(terms)]
    return sum(terms) / 2**_BITS, sum(slopes) / 2**_BITS


@cache
def _pi() -> int:
    """Return pi as a fixed-point integer, by Machin's formula."""
    unit = 2 ** (_BITS + 16)

    def inverse_tangent(n: int) -> int:
        return sum((-1) ** k * (unit // n ** (2 * k + 1)) // (2 * k + 1) for k in range(_BITS))

    return (16 * inverse_tangent(5) - 4 * inverse_tangent(239)) >> 16


def _zeta(x: float) -> int:
    """Return 2/3 x^(3/2) as a fixed-point integer."""
    numerator, denominator = x.as_integer_ratio()
    return math.isqrt((numerator**3 << (2 * _BITS + 2)) // (9 * denominator**3))


def _airy_expansion(x: Array, sign: int) -> Array:
    """Return Ai at x or -x, for x > 10, with the coefficients in DLMF 9.7.2."""
    zeta = np.array([number / 2**_BITS for number in map(_zeta, x.tolist())])
    term, sums = np.ones_like(x), [np.ones_like(x), np.zeros_like(x)]
    for k in range(1, 31):
        term = term * ((6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1))) / zeta
        sums[k % 2] += term if sign > 0 or k % 4 < 2 else -term
    amplitude = 1 / (math.sqrt(math.pi) * np.sqrt(np.sqrt(x)))
    if sign > 0:
        residuals = [float(_zeta(one) - (int(high * 2**64) << (_BITS - 64))) for one, high in zip(x, zeta, strict=True)]
        decay = np.exp(-zeta) * (1 - np.array(residuals) / 2**_BITS)
        return np.asarray(amplitude / 2 * decay * (sums[0] - sums[1]))
    phase = np.array([(_zeta(one) - _pi() // 4) % (2 * _pi()) / 2**_BITS for one in x.tolist()])
    return np.asarray(amplitude * (np.cos(phase) * sums[0] + np.sin(phase) * sums[1]))
