"""Statistics for tensor contents, and contents drawn from statistics, bit-identical on every machine and forever.

Uniform numbers are the raw 64-bit output of Philox-4x64-10 (Salmon et al., SC'11, doi:10.1145/2063384.2063405). Its
counter starts at 0 and its key is the seed. NumPy guarantees only this raw output across versions.
"""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from blake3 import blake3
from numpy.typing import NDArray

from traces.errors import TraceError

QUANTILES = 21  # at 0, 0.05, ..., 1
CHUNK = 1 << 20  # elements drawn at once
MAX_THREADS = 16  # threads that draw; each needs some tens of MiB
FEW = 32  # below this many elements, private statistics hold no quantiles
DIGITS = 2  # significant digits in private statistics
_ROUNDS = 8  # rounds of the Feistel network

Stats = dict[str, Any]
Array = NDArray[Any]


def summarise(sample: torch.Tensor, count: int, private: bool = False) -> Stats:
    """Summarise `count` elements from a sample.

    Args:
        sample: Some or all elements, in order, as a CPU tensor [N].
        count: Number of elements in the whole tensor.
        private: Truncate numbers to 2 significant digits towards zero. Below 32 elements keep only count, min, max,
            mean and sorted.

    Returns:
        dict: "count"; for bool "ones"; otherwise "min", "max", "mean", "std", "quantiles", shares of special values
        ("zeros", "nan", "posinf", "neginf"), and for integers "sorted" and "unique". For complex tensors the statistics
        cover real and imaginary parts together. Entries that cannot be computed are missing.
    """
    if sample.dtype is torch.bool:
        ones = int(sample.sum())
        return {"count": count, "ones": ones if len(sample) == count else round(ones * count / max(len(sample), 1))}
    if sample.is_complex():
        return summarise(torch.view_as_real(sample).reshape(-1), count, private)
    whole = sample.dtype in _INTEGERS
    values = sample.numpy() if whole else sample.double().numpy()
    finite = values[np.isfinite(values)]
    stats: Stats = {"count": count}
    if len(finite):
        stats |= _range(finite, whole)
    shares = {"zeros": values == 0, "nan": np.isnan(values), "posinf": values == np.inf, "neginf": values == -np.inf}
    stats |= {name: float(where.mean()) for name, where in shares.items() if where.any()}
    if len(values):
        stats.setdefault("zeros", 0.0)
    if whole and len(values):
        stats["sorted"] = bool((values[1:] >= values[:-1]).all())
    stats = _coarse(stats) if private else stats
    if whole and len(values) == count > 0 and not (private and count < FEW):
        fits = stats["max"] - stats["min"] >= count - 1  # may be false after rounding, even if the values are unique
        stats["unique"] = bool(fits and len(np.unique(values)) == count)
    return stats


def _range(finite: Array, whole: bool) -> Stats:
    number = int if whole else float
    shares = np.linspace(0, 1, QUANTILES)
    with np.errstate(over="ignore", invalid="ignore"):  # for float64 values near its limits
        moments = {"mean": float(finite.mean(dtype=np.float64)), "std": float(finite.std(dtype=np.float64))}
    return {
        "min": number(finite.min()),
        "max": number(finite.max()),
        **{name: value for name, value in moments.items() if math.isfinite(value)},
        "quantiles": [number(q) for q in np.quantile(finite, shares, method="inverted_cdf")],
    }


def _coarse(stats: Stats) -> Stats:
    available: Stats = (
        stats if stats["count"] >= FEW else {k: stats[k] for k in ("min", "max", "mean", "sorted") if k in stats}
    )
    rounded: Stats = {k: _cut(v) if isinstance(v, int | float) and k != "sorted" else v for k, v in available.items()}
    if "quantiles" in available:
        rounded["quantiles"] = [_cut(q) for q in available["quantiles"]]
    return {**rounded, "count": stats["count"]}


def _cut(value: float) -> float:
    """Truncate to two significant digits towards zero.

    Truncation exceeds no limit, so ids stay in range and shares stay below 1.
    """
    if value == 0:
        return value
    if isinstance(value, int):
        unit: int = 10 ** max(len(str(abs(value))) - DIGITS, 0)
        return abs(value) // unit * unit * (1 if value > 0 else -1)
    text = f"{abs(value):.17e}"
    return math.copysign(float(f"{text[: 1 + DIGITS]}{text[text.index('e') :]}"), value)


_INTEGERS = frozenset(
    (torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64)
)
_COMPONENTS = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def draw(stats: Stats, seed: int, count: int, dtype: torch.dtype, where: str) -> bytes:
    """Draw `count` elements that fit the statistics, as little-endian bytes.

    Shares of zeros, NaN and infinities are exact to one element. Integers lie in [min, max], and are sorted or unique
    if the statistics say so. Exactly `ones` booleans are true.

    Args:
        stats: Statistics as `summarise` returns them.
        seed: Key of the random generator.
        count: Number of elements.
        dtype: Element type; complex types draw real and imaginary parts.
        where: Location for error messages.

    Returns:
        bytes: The elements.

    Raises:
        TraceError: If the statistics do not fit `count` or `dtype`.
    """
    if dtype in _COMPONENTS:
        return draw({**stats, "count": 2 * count}, seed, 2 * count, _COMPONENTS[dtype], where)
    if dtype is not torch.bool and dtype not in _INTEGERS and not dtype.is_floating_point:
        raise TraceError(f"{where}: contents of {dtype} cannot be drawn")
    if dtype in _INTEGERS:
        _check_integers(stats, count, dtype, where)
    if dtype is torch.bool and stats.get("ones", 0) > count:
        raise TraceError(f"{where}: stats.ones is {stats['ones']} of {count} elements")
    if dtype is torch.bool:
        make = _bools
    elif dtype in _INTEGERS and stats.get("unique") and count > 1:
        make = _without_repeats
    elif stats.get("sorted"):
        make = _ascending
    else:
        make = _mixed
    out = torch.empty(count, dtype=dtype)

    def fill(start: int) -> None:
        n = min(CHUNK, count - start)
        out[start : start + n] = torch.from_numpy(make(_Part(stats, seed, count, dtype, start, n))).to(dtype)

    # A chunk depends only on its position, so chunks can be drawn in parallel; NumPy releases the GIL.
    with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as threads:
        for _ in threads.map(fill, range(0, count, CHUNK)):
            pass
    return out.view(torch.uint8).numpy().tobytes() if count else b""


@dataclass(frozen=True, slots=True)
class _Part:
    """Elements [start, start + n) of `count`; start is a multiple of CHUNK."""

    stats: Stats
    seed: int
    count: int
    dtype: torch.dtype
    start: int
    n: int

    def raw(self) -> Array:
        """Return Philox output, uint64 [n]; each counter value yields four numbers."""
        return np.random.Philox(counter=self.start // 4, key=self.seed).random_raw(self.n)

    def share(self, total: int) -> int:
        """Return the number of special elements in this part, if `total` of them are spread evenly over all parts."""
        return (self.start + self.n) * total // self.count - self.start * total // self.count


def _check_integers(stats: Stats, count: int, dtype: torch.dtype, where: str) -> None:
    limits = torch.iinfo(dtype)
    low, high = stats.get("min", 0), stats.get("max", 0)
    if not (isinstance(low, int) and isinstance(high, int) and limits.min <= low <= high <= limits.max):
        raise TraceError(f"{where}: stats.min {low!r} and stats.max {high!r} are no range of {dtype}")
    if stats.get("unique") and high - low + 1 < count:
        raise TraceError(f"{where}: stats.unique: {count} elements do not fit between {low} and {high} without repeats")


def _uniform(raw: Array) -> Array:
    """Convert the upper 53 bits to float64 in [0, 1)."""
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _bools(part: _Part) -> Array:
    chunk = np.zeros(part.n, dtype=bool)
    chunk[_first(part.raw(), part.share(part.stats.get("ones", 0)))] = True
    return chunk


def _first(keys: Array, n: int) -> Array:
    """Return the positions of the n smallest keys."""
    if n <= 0:
        return np.empty(0, dtype=np.int64)
    if n >= len(keys):
        return np.argsort(keys)
    candidates = np.argpartition(keys, n)[:n]
    return candidates[np.argsort(keys[candidates])]


def _knots(stats: Stats) -> tuple[list[float], list[float]]:
    """Return the quantile function as (shares, values), linear between adjacent points.

    Beyond the outer quantiles the function runs to min and max as a power of the share. The power is the one that best
    reproduces the standard deviation. If there is only a mean, two line segments reproduce it exactly.
    """
    if "quantiles" in stats:
        last = QUANTILES - 1
        power = _tail_power(stats)
        bend = [_power(j / _BENDS, power) for j in range(1, _BENDS)]  # from the outer quantile, 0, to the limit, 1
        q = [float(value) for value in stats["quantiles"]]
        lower = [q[1] + (q[0] - q[1]) * t for t in reversed(bend)]
        upper = [q[-2] + (q[-1] - q[-2]) * t for t in bend]
        inner = [j / _BENDS / last for j in range(1, _BENDS)]
        shares = [0.0, *inner, *(i / last for i in range(1, last)), *(1 - s for s in reversed(inner)), 1.0]
        return shares, [q[0], *lower, *q[1:-1], *upper, q[-1]]
    low, high = stats.get("min", 0), stats.get("max", 0)
    mean = min(max(stats.get("mean", (low + high) / 2), low), high)
    share = (high - mean) / (high - low) if high > low else 0.5
    return [0.0, share, 1.0], [low, mean, high]


_BENDS = 16  # line segments that approximate the curve of a tail


def _tail_power(stats: Stats) -> int:
    center, spread = float(stats.get("mean", 0.0)), float(stats.get("std", math.nan))
    q = [float(value) - center for value in stats["quantiles"]]
    inside = sum(a * a + a * b + b * b for a, b in itertools.pairwise(q[1:-1])) / 3

    def error(power: int) -> float:
        tails = [(q[1], q[0] - q[1]), (q[-2], q[-1] - q[-2])]
        outside = sum(k * k + 2 * k * d / (power + 1) + d * d / (2 * power + 1) for k, d in tails)
        return abs((inside + outside) / (QUANTILES - 1) - spread * spread)

    return min(range(1, 17), key=error) if math.isfinite(error(1)) else 1


def _power(base: float, exponent: int) -> float:
    """Compute an integer power by multiplication alone, which every machine rounds identically."""
    result: float = math.prod([base] * exponent)
    return result


def _values(stats: Stats, u: Array, dtype: torch.dtype) -> Array:
    """Evaluate the inverse distribution at `u` and round to `dtype`; the result is float64 or 64-bit integers."""
    shares, knots = _knots(stats)
    if dtype in _INTEGERS:
        low, high = stats.get("min", 0), stats.get("max", 0)
        heights = np.interp(u, shares, [float(k - low) for k in knots])
        steps = np.minimum(np.rint(heights), np.nextafter(2.0**64, 0)).astype(np.uint64)
        return _offset(np.minimum(steps, np.uint64(high - low)), low, dtype)
    limits = torch.finfo(dtype)
    smallest = limits.tiny if dtype is torch.float8_e8m0fnu else limits.min  # float8_e8m0fnu has neither sign nor zero
    drawn = np.interp(u, shares, [min(max(float(k), smallest), limits.max) for k in knots])
    return torch.from_numpy(drawn).to(dtype).double().numpy()


def _offset(steps: Array, low: int, dtype: torch.dtype) -> Array:
    """Return low + steps, wrapping in 64 bits."""
    total = steps + np.uint64(low % 2**64)
    return total if dtype is torch.uint64 else total.view(np.int64)


def _ascending(part: _Part) -> Array:
    """Draw one element from each stratum, `count` in all; the first is the minimum and the last is the maximum."""
    strata = part.start + np.arange(part.n, dtype=np.float64)
    u = (strata + _uniform(part.raw())) / part.count
    u[strata == 0], u[strata == part.count - 1] = 0.0, 1.0
    return _values(part.stats, u if part.count > 1 else u * 0, part.dtype)


def _without_repeats(part: _Part) -> Array:
    """Draw one integer from each stratum; [min, max] is divided into `count` strata.

    The strata are in order if the result is to be sorted, otherwise in a keyed permutation.
    """
    stats, count = part.stats, part.count
    low, span = stats["min"], stats["max"] - stats["min"] + 1
    width, rest = divmod(span, count)
    # The value in a stratum depends only on the stratum's number, so values can be drawn in any order.
    order_key, value_key = part.seed.to_bytes(16, "little") + b"order", part.seed.to_bytes(16, "little") + b"value"
    strata = np.arange(part.start, part.start + part.n, dtype=np.int64)
    if not stats.get("sorted"):
        strata = _permute(strata, count, order_key)
    i = strata.astype(np.uint64)
    begin = i * np.uint64(width) + i * np.uint64(rest) // np.uint64(count)
    end = (i + np.uint64(1)) * np.uint64(width) + (i + np.uint64(1)) * np.uint64(rest) // np.uint64(count)
    inside = _mix(i, _round_keys(value_key)[0]) % (end - begin)
    if stats.get("sorted"):  # the first and last elements must be min and max
        inside[strata == 0] = 0
        inside[strata == count - 1] = (end - begin - np.uint64(1))[strata == count - 1]
    return _offset(begin + inside, low, part.dtype)


def _mixed(part: _Part) -> Array:
    stats, raw = part.stats, part.raw()
    special = {"nan": np.nan, "posinf": np.inf, "neginf": -np.inf} if part.dtype.is_floating_point else {}
    zeros = round(stats.get("zeros", 0.0) * part.count) if stats.get("min", 0) <= 0 <= stats.get("max", 0) else 0
    values = _values(stats, _uniform(raw), part.dtype)
    keys = raw * np.uint64(0x9E3779B97F4A7C15)  # the multiplier is odd, so this is another order of the same numbers
    shares = {name: part.share(round(stats.get(name, 0.0) * part.count)) for name in special}
    order = _first(keys, sum(shares.values()))
    finite = np.ones(part.n, dtype=bool)
    finite[order] = False
    if "zeros" in stats:
        values[finite] = _with_zeros(values[finite], part.share(zeros), keys[finite])
    for name, n in shares.items():
        values[order[:n]], order = special[name], order[n:]
    return values


def _with_zeros(values: Array, zeros: int, keys: Array) -> Array:
    """Return the values with exactly `zeros` zeros.

    If zeros are missing, the values of smallest magnitude become zero. If there are too many, the surplus gets copies
    of other values. Ties are broken by `keys`.
    """
    zero_positions, nonzero_positions = np.flatnonzero(values == 0), np.flatnonzero(values)
    missing = min(zeros - len(zero_positions), len(nonzero_positions))
    if missing > 0:
        sizes = np.abs(values[nonzero_positions].astype(np.float64))
        limit = np.partition(sizes, missing - 1)[missing - 1]
        values[nonzero_positions[sizes < limit]] = 0
        ties = nonzero_positions[sizes == limit]
        values[ties[_first(keys[ties], missing - int((sizes < limit).sum()))]] = 0
    elif len(nonzero_positions):
        surplus = zero_positions[zeros:]
        values[surplus] = values[
            nonzero_positions[(keys[surplus] % np.uint64(len(nonzero_positions))).astype(np.int64)]
        ]
    return values


def pseudonyms(values: NDArray[np.int64], key: bytes) -> NDArray[np.int64]:
    """Replace non-negative integers by a keyed permutation of [0, max]; negative ones (sentinels) are kept.

    Equal values get equal pseudonyms. The permutation is a Feistel network on the smallest even number of bits that
    holds max, applied repeatedly until the result is in range (Black and Rogaway, CT-RSA 2002, "cycle-walking").
    """
    values = np.asarray(values, dtype=np.int64)
    result = values.copy()
    plain = values >= 0
    if plain.any():
        result[plain] = _permute(values[plain], int(values[plain].max()) + 1, key)
    return result


def _permute(values: Array, size: int, key: bytes) -> Array:
    """Apply a keyed permutation of [0, size) to `values`; size is at most 2**63."""
    half = max(((size - 1).bit_length() + 1) // 2, 1)
    keys = _round_keys(key)
    mask = np.uint64((1 << half) - 1)
    result = values.astype(np.uint64)
    walking = np.ones(result.shape, dtype=bool)
    # The walk ends for every value: the network permutes a superset of [0, size), so each cycle returns to that range.
    while walking.any():
        left, right = result[walking] >> np.uint64(half), result[walking] & mask
        for round_key in keys:
            left, right = right, left ^ (_mix(right, round_key) & mask)
        result[walking] = left << np.uint64(half) | right
        walking[walking] = result[walking] >= np.uint64(size)
    return result.view(np.int64)


def _round_keys(key: bytes) -> Array:
    return np.frombuffer(blake3(key).digest(length=8 * _ROUNDS), dtype="<u8")


def _mix(x: Array, key: np.uint64) -> Array:
    """Return the splitmix64 finaliser (Steele, Lea and Flood, OOPSLA 2014) of x + key."""
    x = x + key
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    result: Array = x ^ x >> np.uint64(31)
    return result
