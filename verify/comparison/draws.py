"""Test random draws: their distribution, and their independence.

Each test is a bound that holds for any number of draws, not an approximation for many. Right draws fail all tests
of a case together with a probability below `FALSE_ALARM`. Each kind of test has a share of it, divided by the
number of comparisons that it makes (Bonferroni). Sources of the bounds:

- Shares of events, and coincidences of two: Chernoff's bound exp(-n KL(k/n, p)) for sums of independent events,
  whose probabilities may differ (Hoeffding, Probability inequalities for sums of bounded random variables, 1963,
  theorem 1).
- Coincidences at a distance within one call: such sums split into two sums of independent terms, which halves the
  exponent (Cauchy-Schwarz; Janson, Large deviations for sums of partly dependent random variables, 2004).
- Distribution function: 2 exp(-2 n d^2) (Dvoretzky, Kiefer and Wolfowitz, 1956; the constant: Massart, 1990).
- Variance of normal draws: the tails of chi-square (Laurent and Massart, Adaptive estimation of a quadratic
  functional by model selection, 2000, lemma 1). Their mean: exp(-n t^2 / 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

Pair: TypeAlias = tuple[int, int]  # seed and offset of a call

FALSE_ALARM = 1e-9
_SHARE = FALSE_ALARM / 5  # for each kind of test: shares, distances, moments, coincidences, counts over many calls
HEAD = 1 << 16  # draws compared between calls at every shift; all draws of the first call are compared with each other
MOST = 1 << 20  # draws of a call that are tested: the first and the last ones
_PARTS = 16  # parts of a call and the probability range whose shares are counted separately
_FINE = 64  # intervals that a finer test of the draws distinguishes
_TAILS = 24  # counts cover draws below 2^-1 to 2^-24, and as many from the other end
_ASIDE = 0.618  # offset, so that a grid does not coincide with interval borders
_ROUNDING = 1e-9  # error of expected coincidences through the Fourier transform

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Anomaly:
    """Evidence against the draws.

    Attributes:
        rule: Property that the draws do not have.
        detail: One line.
        advice: Hint about the part that is probably wrong.
        surprise: Negative logarithm of the bound, without its factors. Among several findings, the most
            surprising one shows the cause; the others are consequences.
    """

    rule: str
    detail: str
    advice: str
    surprise: float = math.inf


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class DrawSample:
    """Draws from one call in element order, or from several calls; all arrays are [n].

    Attributes:
        hits: True if an event occurred, with a probability between `low` and `high`.
        low: Lower bounds for the probabilities.
        high: Upper bounds for the probabilities.
        below: Lower bounds for the uniform number behind each draw, i.e. its distribution function; empty for
            pure events.
        above: Upper bounds for that number.
        normal: Draws minus their mean, divided by their standard deviation; empty for other laws.
        rounding: Error that each value in `normal` may have.
    """

    hits: Array
    low: Array
    high: Array
    below: Array = field(default_factory=_nothing)
    above: Array = field(default_factory=_nothing)
    normal: Array = field(default_factory=_nothing)
    rounding: Array = field(default_factory=_nothing)

    def __len__(self) -> int:
        return len(self.hits)

    def part(self, selection: slice) -> DrawSample:
        """Return the draws at these positions."""
        return DrawSample(*(getattr(self, f.name)[selection] for f in fields(self)))


def ends(sample: DrawSample) -> DrawSample:
    """Return at most `MOST` draws: the first and the last ones, in equal parts."""
    if len(sample) <= MOST:
        return sample
    return pooled([sample.part(slice(0, MOST // 2)), sample.part(slice(-MOST // 2, None))])


def pooled(samples: Iterable[DrawSample]) -> DrawSample:
    """Concatenate the draws from several calls."""
    parts = list(samples)
    return DrawSample(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(DrawSample)))


def examine(calls: Sequence[tuple[Pair, DrawSample]], length: int) -> Anomaly | None:
    """Return the most surprising anomaly in the draws, or None.

    Args:
        calls: Each call's seed and offset, and its draws. A call may combine several calls whose pairs differ by
            the same steps.
        length: How many draws each single call has.
    """
    together = pooled(sample for _, sample in calls)
    anomalies = [*_shares(together), *_moments(together), *_distances(together), *_dependences(calls, length)]
    return max(anomalies, key=lambda f: f.surprise, default=None)


class Tally:
    """Counts over so many calls that their draws cannot all be stored: events, and draws in both tails."""

    def __init__(self) -> None:
        self._events = np.zeros(4)  # draws, hits, and the least and largest expected number of hits
        self._numbers = 0
        self._tails = np.zeros((2, 2 * _TAILS))  # draws that certainly, and possibly, lie in each tail

    def add(self, sample: DrawSample) -> None:
        """Add the draws from one more call."""
        self._events += [len(sample), sample.hits.sum(), sample.low.sum(), sample.high.sum()]
        if len(sample.below):
            ends = 2.0 ** -np.arange(1, _TAILS + 1)
            below, above = np.sort(sample.below), np.sort(sample.above)
            self._numbers += len(below)
            lower_tails = np.stack([np.searchsorted(above, ends), np.searchsorted(below, ends, side="right")])
            outside = np.stack([np.searchsorted(below, 1 - ends, side="right"), np.searchsorted(above, 1 - ends)])
            self._tails += np.concatenate([lower_tails, len(below) - outside], axis=1)

    def examine(self) -> Anomaly | None:
        """Return the most surprising anomaly, or None."""
        limit = math.log(2 * (2 * _TAILS + 1) / _SHARE)
        n, hits, low, high = self._events
        surprises = [
            (float(_surprise(hits, n, low, high)), f"the share of {n:.0f} draws is {hits / n:.6g}", float(low / n))
        ]
        for k in range(2 * _TAILS if self._numbers else 0):
            p, side = 2.0 ** -(k % _TAILS + 1), "low" if k < _TAILS else "high"
            count = np.clip(self._numbers * p, *self._tails[:, k])
            surprise = float(_surprise(count, self._numbers, self._numbers * p, self._numbers * p))
            surprises.append(
                (surprise, f"of {self._numbers} draws {count / self._numbers:.4g} lie in the {side} tail", p)
            )
        surprise, text, wanted = max(surprises)
        if surprise <= limit:
            return None
        advice = "look at how random words become numbers, and at the function applied to them"
        return Anomaly("tail" if "tail" in text else "share", f"{text}, expected {wanted:.6g}", advice, surprise)


def _shares(sample: DrawSample) -> Iterator[Anomaly]:
    """Yield anomalies in event shares: in all draws, in each part, and in groups with similar probability."""
    n, bins = len(sample), (sample.low * _PARTS).astype(int)
    parts = [slice(n * i // _PARTS, n * (i + 1) // _PARTS) for i in range(_PARTS)]
    groups = [slice(0, n), *(bins == i for i in np.unique(bins)), *parts]
    for selection in groups:
        hits, low, high = sample.hits[selection], sample.low[selection], sample.high[selection]
        surprise = _surprise(hits.sum(), len(hits), low.sum(), high.sum()) if len(hits) else 0.0
        if surprise > math.log(2 * len(groups) / _SHARE):
            share, wanted = hits.mean(), (low.mean() + high.mean()) / 2
            scope = "" if len(hits) == n else f" among some {len(hits)} of the {n}"
            text = f"the share{scope} is {share:.4g} ({hits.sum()} of {len(hits)} draws), expected {wanted:.4g}"
            advice = "look at which outcome the probability is of, and at the comparison with it"
            yield Anomaly("share", text, advice, float(surprise))


def _surprise(hits: Any, n: Any, low: Any, high: Any) -> Any:
    """Return the exponent of Chernoff's bound for `hits` in n draws, if between `low` and `high` are expected."""
    share = np.asarray(hits / n, dtype=float)
    p = np.clip(share, low / n, high / n).clip(1e-300, 1 - 1e-16)
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(share > 0, share * np.log(share / p), 0.0)
        miss = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - p)), 0.0)
    return n * (hit + miss)


def _distances(sample: DrawSample) -> Iterator[Anomaly]:
    """Yield anomalies in the distribution function of the draws, and of their fractions.

    The fractions come from many small intervals, and show if the draws take only few values.
    """
    n = len(sample.below)
    if not n:
        return
    by_chance = math.sqrt(math.log(2 * 2 / _SHARE) / (2 * n))
    width = float((sample.above - sample.below).max())
    advice = "look at how random words become numbers, and at the function applied to them"
    distance = _distance(sample.below, sample.above) - width
    if distance > by_chance:
        text = f"the distribution function of {n} draws is off by {distance:.3g}; by chance it is by {by_chance:.3g}"
        yield Anomaly("distribution", text, advice, 2 * n * distance**2)
    scale = 2.0 ** math.floor(-math.log2(max(width, 1e-300) * _FINE))
    below, above = sample.below * scale + _ASIDE, sample.above * scale + _ASIDE
    whole = np.floor(below)
    split = np.floor(above) != whole  # no information on the fraction
    distance = _distance(np.where(split, 0.0, below - whole), np.where(split, 1.0, above - whole)) - width * scale
    if scale > 1 and distance > by_chance:
        text = f"{n} draws fall on a grid: in each {scale:.3g}th of their range the distribution function is off by "
        yield Anomaly("grid", f"{text}{distance:.3g}; by chance it is by {by_chance:.3g}", advice, 2 * n * distance**2)


def _distance(below: Array, above: Array) -> float:
    """Return the minimum deviation from uniformity, for numbers known to lie between these bounds."""
    n = len(below)
    steps = np.arange(1, n + 1) / n
    return float(max((steps - np.sort(above)).max(), (np.sort(below) - steps + 1 / n).max(), 0.0))


def _moments(sample: DrawSample) -> Iterator[Anomaly]:
    z, n = sample.normal, len(sample.normal)
    if not n:
        return
    x = math.log(4 / _SHARE)
    mean, allowed = float(z.mean()), math.sqrt(2 * x / n) + float(sample.rounding.mean())
    advice = "look at the mean, at the standard deviation and at the transform to normal numbers"
    if not abs(mean) <= allowed:
        text = f"the mean of {n} draws is {mean:.3g} standard deviations off; by chance it is by {allowed:.3g}"
        yield Anomaly("mean", text, advice, n * mean**2 / 2)
    squares, rounded = float((z * z).sum()), float((sample.rounding * (2 * np.abs(z) + sample.rounding)).sum())
    lowest, highest = n - 2 * math.sqrt(n * x) - rounded, n + 2 * math.sqrt(n * x) + 2 * x + rounded
    if not lowest <= squares <= highest:
        text = f"the variance of {n} draws is {squares / n:.4g} of the right one; by chance it is {lowest / n:.4g} to "
        yield Anomaly("variance", f"{text}{highest / n:.4g}", advice, (squares - n) ** 2 / (4 * n))


def _dependences(calls: Sequence[tuple[Pair, DrawSample]], length: int) -> Iterator[Anomaly]:
    """Yield anomalies for draws that coincide within a call at any distance, or in two calls at any shift."""
    heads = [sample.part(slice(0, HEAD)) for _, sample in calls]
    size = _transformed(max(map(len, heads)))
    spectra = [_Spectrum(calls[0][1], _transformed(len(calls[0][1])))] + [_Spectrum(head, size) for head in heads]
    pairs = [calls[0][0]] + [pair for pair, _ in calls]
    heads_range = range(1, len(spectra))
    couples = [(i, i) for i in (0, *heads_range[1:])] + list(combinations(heads_range, 2))
    limit = math.log(2 * max(sum(len(spectra[i]) + len(spectra[j]) for i, j in couples), 1) / _SHARE)
    for i, j in couples:
        coincidence = _coincidence(spectra[i], spectra[j], length, limit)
        if coincidence is not None:
            yield _dependent(pairs[i], pairs[j], coincidence)


def _transformed(length: int) -> int:
    """Return a Fourier transform size at which no two shifts of sequences with this length overlap."""
    return 2 << max(length - 1, 1).bit_length()


class _Spectrum:
    """Fourier transforms: a call's rarer events, and the bounds for their probabilities."""

    def __init__(self, sample: DrawSample, size: int) -> None:
        rare = sample.low + sample.high <= 1
        hits = np.where(rare, sample.hits, ~sample.hits).astype(float)
        low, high = np.where(rare, sample.low, 1 - sample.high), np.where(rare, sample.high, 1 - sample.low)
        self.length, self.size = len(sample), size
        self.values = [np.fft.rfft(x, size) for x in (hits, low, high)]

    def __len__(self) -> int:
        return self.length


def _coincidence(a: _Spectrum, b: _Spectrum, length: int, limit: float) -> _Coincidence | None:
    """Return the most surprising shift between two calls, or within one; None if it is not surprising."""
    n, m = len(a), len(b)
    # draw i in one call, draw i + shift in the other
    shifts = np.arange(1, min(length, m)) if a is b else np.arange(1 - n, m)
    if not len(shifts):
        return None
    # The inverse transform of conj(x) * y is the cross-correlation: entry s sums x[i] * y[i + s] over i.
    hits, low, high = (np.fft.irfft(x.conj() * y, a.size)[shifts] for x, y in zip(a.values, b.values, strict=True))
    overlap = np.minimum(n, m - shifts) - np.maximum(0, -shifts)
    slack = _ROUNDING * overlap
    surprise = _surprise(np.rint(hits), overlap, (low - slack).clip(0), np.minimum(high + slack, overlap))
    surprise = surprise / 2 if a is b else surprise
    worst = int(surprise.argmax())
    if surprise[worst] <= limit:
        return None
    counts = (int(shifts[worst]), int(np.rint(hits[worst])), int(overlap[worst]))
    return _Coincidence(*counts, float((low + high)[worst] / 2), float(surprise[worst]))


@dataclass(frozen=True)
class _Coincidence:
    """Coincidences between rarer events at one shift: how many, in how many places, and how many were expected."""

    shift: int
    hits: int
    places: int
    expected: float
    surprise: float


def _dependent(a: Pair, b: Pair, at: _Coincidence) -> Anomaly:
    both = f"in {at.hits} of {at.places} places both have the rarer outcome, expected {at.expected:.3g}"
    if a == b:
        text = f"within a call, elements {at.shift} apart have not been drawn independently: {both}"
        advice = "give each element a counter of its own: its index in the whole tensor"
        return Anomaly("index", text, advice, at.surprise)
    seeds, offsets = a[0] != b[0], a[1] != b[1]
    rule = "pair" if seeds and offsets else "seed" if seeds else "offset"
    how = f"element i of one and element i{f' {at.shift:+d}' if at.shift else ''} of the other"
    text = f"calls with philox={a} and philox={b} have not been drawn independently, {how}: {both}"
    advice_of = {
        "seed": "use all 64 bits of seed as Philox's key",
        "offset": "use all 64 bits of offset as the counter's low words and the element's index as its high ones: "
        "offset + index makes calls overlap",
        "pair": "seed is the key and offset belongs into the counter; do not mix them",
    }
    return Anomaly(rule, text, advice_of[rule], at.surprise)
