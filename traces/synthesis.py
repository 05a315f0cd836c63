"""Statistics of tensor contents, and contents drawn from statistics: the same bytes on every machine, for ever.

Uniform numbers are the raw 64-bit output of Philox-4x64-10 (Salmon et al., SC'11, doi:10.1145/2063384.2063405), whose
counter starts at 0 and whose key is the seed; NumPy promises no more than this of its generators across versions.
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
MAX_THREADS = 16  # that draw, each with some tens of MiB
FEW = 32  # elements below which private statistics hold no quantiles
DIGITS = 2  # significant ones in private statistics
_ROUNDS = 8  # of the Feistel network

Stats = dict[str, Any]
Array = NDArray[Any]


def summarise(sample: torch.Tensor, count: int, private: bool = False) -> Stats:
    """Statistics of `count` elements of which `sample` [N] on the CPU are some or all, in their order.

    private: numbers are cut to 2 significant digits towards zero; below 32 elements no quantiles or shares are kept.
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
        fits = stats["max"] - stats["min"] >= count - 1  # no longer so, perhaps, once they are rounded
        stats["unique"] = bool(fits and len(np.unique(values)) == count)
    return stats


def _range(finite: Array, whole: bool) -> Stats:
    number = int if whole else float
    shares = np.linspace(0, 1, QUANTILES)
    with np.errstate(over="ignore", invalid="ignore"):  # of float64 near its limits
        moments = {"mean": float(finite.mean(dtype=np.float64)), "std": float(finite.std(dtype=np.float64))}
    return {
        "min": number(finite.min()),
        "max": number(finite.max()),
        **{name: value for name, value in moments.items() if math.isfinite(value)},
        "quantiles": [number(q) for q in np.quantile(finite, shares, method="inverted_cdf")],
    }


def _coarse(stats: Stats) -> Stats:
    kept: Stats = (
        stats if stats["count"] >= FEW else {k: stats[k] for k in ("min", "max", "mean", "sorted") if k in stats}
    )
    rounded: Stats = {k: _cut(v) if isinstance(v, int | float) and k != "sorted" else v for k, v in kept.items()}
    if "quantiles" in kept:
        rounded["quantiles"] = [_cut(q) for q in kept["quantiles"]]
    return {**rounded, "count": stats["count"]}


def _cut(value: float) -> float:
    """To two significant digits, towards zero, so that no limit is passed: ids stay in range, shares below 1."""
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
    """`count` elements of `dtype` like those that `stats` describes, little-endian.

    Shares of zeros, NaN and infinities are exact to one element; integers lie in [min, max], and are sorted or without
    repeats where the statistics say so; of truth values exactly `ones` are true. Raises TraceError naming `where` where
    the statistics do not fit `count` or `dtype`.
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

    # A chunk depends on nothing but its place, and NumPy works beside other threads.
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
        """Philox output, uint64 [n]; four numbers a count."""
        return np.random.Philox(counter=self.start // 4, key=self.seed).random_raw(self.n)

    def share(self, total: int) -> int:
        """How many of `total` special elements, spread evenly over all, are among these."""
        return (self.start + self.n) * total // self.count - self.start * total // self.count


def _check_integers(stats: Stats, count: int, dtype: torch.dtype, where: str) -> None:
    limits = torch.iinfo(dtype)
    low, high = stats.get("min", 0), stats.get("max", 0)
    if not (isinstance(low, int) and isinstance(high, int) and limits.min <= low <= high <= limits.max):
        raise TraceError(f"{where}: stats.min {low!r} and stats.max {high!r} are no range of {dtype}")
    if stats.get("unique") and high - low + 1 < count:
        raise TraceError(f"{where}: stats.unique: {count} elements do not fit between {low} and {high} without repeats")


def _uniform(raw: Array) -> Array:
    """In [0, 1): the upper 53 bits."""
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _bools(part: _Part) -> Array:
    chunk = np.zeros(part.n, dtype=bool)
    chunk[_first(part.raw(), part.share(part.stats.get("ones", 0)))] = True
    return chunk


def _first(keys: Array, n: int) -> Array:
    """Positions of the n smallest keys."""
    if n <= 0:
        return np.empty(0, dtype=np.int64)
    if n >= len(keys):
        return np.argsort(keys)
    some = np.argpartition(keys, n)[:n]
    return some[np.argsort(keys[some])]


def _knots(stats: Stats) -> tuple[list[float], list[float]]:
    """The quantile function as (shares, values), a line between each two.

    Beyond the outer quantiles it runs to min and max as a power of the share that gives the standard deviation best. Of
    a mean alone there are two lines, which meet it exactly.
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


_BENDS = 16  # lines that stand for the curve of a tail


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
    """By multiplication alone, which every machine rounds alike."""
    result: float = math.prod([base] * exponent)
    return result


def _values(stats: Stats, u: Array, dtype: torch.dtype) -> Array:
    """The inverse of the distribution at `u`, rounded to `dtype`: float64, or integers in 64 bits."""
    shares, knots = _knots(stats)
    if dtype in _INTEGERS:
        low, high = stats.get("min", 0), stats.get("max", 0)
        heights = np.interp(u, shares, [float(k - low) for k in knots])
        steps = np.minimum(np.rint(heights), np.nextafter(2.0**64, 0)).astype(np.uint64)
        return _offset(np.minimum(steps, np.uint64(high - low)), low, dtype)
    limits = torch.finfo(dtype)
    smallest = limits.tiny if dtype is torch.float8_e8m0fnu else limits.min  # which has no sign and no zero
    drawn = np.interp(u, shares, [min(max(float(k), smallest), limits.max) for k in knots])
    return torch.from_numpy(drawn).to(dtype).double().numpy()


def _offset(steps: Array, low: int, dtype: torch.dtype) -> Array:
    """low + steps, wrapping in 64 bits."""
    total = steps + np.uint64(low % 2**64)
    return total if dtype is torch.uint64 else total.view(np.int64)


def _ascending(part: _Part) -> Array:
    """One element from each of `count` strata; the first is the least and the last the greatest."""
    strata = part.start + np.arange(part.n, dtype=np.float64)
    u = (strata + _uniform(part.raw())) / part.count
    u[strata == 0], u[strata == part.count - 1] = 0.0, 1.0
    return _values(part.stats, u if part.count > 1 else u * 0, part.dtype)


def _without_repeats(part: _Part) -> Array:
    """One integer from each of `count` strata of [min, max], in order if sorted, else in a keyed permutation."""
    stats, count = part.stats, part.count
    low, span = stats["min"], stats["max"] - stats["min"] + 1
    width, rest = divmod(span, count)
    # What a stratum holds depends on its number alone, so the values can be drawn in any order.
    order_key, value_key = part.seed.to_bytes(16, "little") + b"order", part.seed.to_bytes(16, "little") + b"value"
    strata = np.arange(part.start, part.start + part.n, dtype=np.int64)
    if not stats.get("sorted"):
        strata = _permute(strata, count, order_key)
    i = strata.astype(np.uint64)
    begin = i * np.uint64(width) + i * np.uint64(rest) // np.uint64(count)
    end = (i + np.uint64(1)) * np.uint64(width) + (i + np.uint64(1)) * np.uint64(rest) // np.uint64(count)
    inside = _mix(i, _round_keys(value_key)[0]) % (end - begin)
    if stats.get("sorted"):  # from min to max: offsets start at 0
        inside[strata == 0] = 0
        inside[strata == count - 1] = (end - begin - np.uint64(1))[strata == count - 1]
    return _offset(begin + inside, low, part.dtype)


def _mixed(part: _Part) -> Array:
    stats, raw = part.stats, part.raw()
    special = {"nan": np.nan, "posinf": np.inf, "neginf": -np.inf} if part.dtype.is_floating_point else {}
    zeros = round(stats.get("zeros", 0.0) * part.count) if stats.get("min", 0) <= 0 <= stats.get("max", 0) else 0
    values = _values(stats, _uniform(raw), part.dtype)
    keys = raw * np.uint64(0x9E3779B97F4A7C15)  # odd: another order of the same numbers
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
    """The same with exactly `zeros` zeros: the smallest become zero, or those too many get values of others."""
    found, others = np.flatnonzero(values == 0), np.flatnonzero(values)
    missing = min(zeros - len(found), len(others))
    if missing > 0:
        sizes = np.abs(values[others].astype(np.float64))
        limit = np.partition(sizes, missing - 1)[missing - 1]
        values[others[sizes < limit]] = 0
        ties = others[sizes == limit]
        values[ties[_first(keys[ties], missing - int((sizes < limit).sum()))]] = 0
    elif len(others):
        surplus = found[zeros:]
        values[surplus] = values[others[(keys[surplus] % np.uint64(len(others))).astype(np.int64)]]
    return values


def pseudonyms(values: NDArray[np.int64], key: bytes) -> NDArray[np.int64]:
    """Other integers for the non-negative ones: a keyed permutation of [0, max]; negative ones (sentinels) are kept.

    Equal values get equal pseudonyms. A Feistel network on the least even number of bits that holds max, walked until
    it is back in range (Black and Rogaway, CT-RSA 2002, "cycle-walking").
    """
    values = np.asarray(values, dtype=np.int64)
    result = values.copy()
    plain = values >= 0
    if plain.any():
        result[plain] = _permute(values[plain], int(values[plain].max()) + 1, key)
    return result


def _permute(values: Array, size: int, key: bytes) -> Array:
    """A permutation of [0, size), applied to `values`; size is at most 2**63."""
    half = max(((size - 1).bit_length() + 1) // 2, 1)
    keys = _round_keys(key)
    mask = np.uint64((1 << half) - 1)
    result = values.astype(np.uint64)
    walking = np.ones(result.shape, dtype=bool)
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
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) of x + key."""
    x = x + key
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    result: Array = x ^ x >> np.uint64(31)
    return result
