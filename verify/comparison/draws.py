"""Tests of random draws: their distribution, and that none depends on another.

A test is a bound that holds for any number of draws, and no approximation for many. Right draws fail all the tests of
a case together with a probability under `FALSE_ALARM`: each kind of test has a share of it, divided by the number of
comparisons that it makes (Bonferroni). Sources of the bounds:

- shares of events, and coincidences of two: Chernoff's bound exp(-n KL(k/n, p)) of sums of independent events, whose
  probabilities may differ (Hoeffding, Probability inequalities for sums of bounded random variables, 1963, theorem 1);
- coincidences at a distance within one call: such sums fall into two of independent terms, which halves the exponent
  (Cauchy-Schwarz; Janson, Large deviations for sums of partly dependent random variables, 2004);
- distribution function: 2 exp(-2 n d^2) (Dvoretzky, Kiefer and Wolfowitz, 1956; the constant: Massart, 1990);
- variance of normal draws: the tails of chi-square (Laurent and Massart, Adaptive estimation of a quadratic functional
  by model selection, 2000, lemma 1); their mean: exp(-n t^2 / 2).
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
_SHARE = FALSE_ALARM / 5  # of each kind of test: shares, distances, moments, coincidences, counts of many calls
HEAD = 1 << 16  # draws of a call that are compared with other calls at every shift; of the first one all with its own
MOST = 1 << 20  # draws of a call that are looked at: the first and the last of them
_PARTS = 16  # of a call, and of the probabilities, whose shares are counted each
_FINE = 64  # intervals that a finer look at the draws is to tell apart
_TAILS = 24  # counts are of draws under 2^-1 to 2^-24, and as many from the other end
_ASIDE = 0.618  # so that a grid does not come to lie where one interval ends and the next begins
_ROUNDING = 1e-9  # of expected coincidences, by the Fourier transform

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Anomaly:
    """What speaks against the draws. rule: which property they lack. detail: one line. advice: what to look at.

    surprise: how unlikely right draws would be like this: the negative logarithm of the bound, but for its factors. Of
    several findings the most surprising tells the cause, the others its consequences.
    """

    rule: str
    detail: str
    advice: str
    surprise: float = math.inf


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class DrawSample:
    """The draws of one call, in the order of the elements, or of several. All arrays are [n].

    hits: whether an event came about, of a probability between `low` and `high`. below, above: bounds of the uniform
    number that a draw stands for, which is its distribution function's value; empty for draws that are events alone.
    normal: the draws less their mean, over their standard deviation, and `rounding`, how far each may be off; empty
    where the law is another.
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

    def part(self, where: slice) -> DrawSample:
        """The draws at these places."""
        return DrawSample(*(getattr(self, f.name)[where] for f in fields(self)))


def ends(sample: DrawSample) -> DrawSample:
    """At most `MOST` draws: the first half of them, and the last."""
    if len(sample) <= MOST:
        return sample
    return pooled([sample.part(slice(0, MOST // 2)), sample.part(slice(-MOST // 2, None))])


def pooled(samples: Iterable[DrawSample]) -> DrawSample:
    """The draws of several calls, one after the other."""
    parts = list(samples)
    return DrawSample(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(DrawSample)))


def examine(calls: Sequence[tuple[Pair, DrawSample]], length: int) -> Anomaly | None:
    """What speaks most against the draws of calls, each with the pair that it was given.

    A call may be several, of pairs with like differences; length: of each of these.
    """
    together = pooled(sample for _, sample in calls)
    found = [*_shares(together), *_moments(together), *_distances(together), *_dependences(calls, length)]
    return max(found, key=lambda f: f.surprise, default=None)


class Tally:
    """Counts of the draws of so many calls that they cannot all be held: of events, and of draws in both tails."""

    def __init__(self) -> None:
        self._events = np.zeros(4)  # draws, hits, and the least and largest number of hits that is expected
        self._numbers = 0
        self._tails = np.zeros((2, 2 * _TAILS))  # draws that certainly and possibly lie in each

    def add(self, sample: DrawSample) -> None:
        """The draws of one more call."""
        self._events += [len(sample), sample.hits.sum(), sample.low.sum(), sample.high.sum()]
        if len(sample.below):
            ends = 2.0 ** -np.arange(1, _TAILS + 1)
            below, above = np.sort(sample.below), np.sort(sample.above)
            self._numbers += len(below)
            left = np.stack([np.searchsorted(above, ends), np.searchsorted(below, ends, side="right")])
            kept = np.stack([np.searchsorted(below, 1 - ends, side="right"), np.searchsorted(above, 1 - ends)])
            self._tails += np.concatenate([left, len(below) - kept], axis=1)

    def examine(self) -> Anomaly | None:
        """What speaks most against the draws."""
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
    """Events in all draws, in each part of them, and among those of like probability."""
    n, like = len(sample), (sample.low * _PARTS).astype(int)
    parts = [slice(n * i // _PARTS, n * (i + 1) // _PARTS) for i in range(_PARTS)]
    groups = [slice(0, n), *(like == i for i in np.unique(like)), *parts]
    for where in groups:
        hits, low, high = sample.hits[where], sample.low[where], sample.high[where]
        surprise = _surprise(hits.sum(), len(hits), low.sum(), high.sum()) if len(hits) else 0.0
        if surprise > math.log(2 * len(groups) / _SHARE):
            share, wanted = hits.mean(), (low.mean() + high.mean()) / 2
            place = "" if len(hits) == n else f" among some {len(hits)} of the {n}"
            text = f"the share{place} is {share:.4g} ({hits.sum()} of {len(hits)} draws), expected {wanted:.4g}"
            advice = "look at which outcome the probability is of, and at the comparison with it"
            yield Anomaly("share", text, advice, float(surprise))


def _surprise(hits: Any, n: Any, low: Any, high: Any) -> Any:
    """The exponent of Chernoff's bound for so many hits of n, where between `low` and `high` are expected."""
    share = np.asarray(hits / n, dtype=float)
    p = np.clip(share, low / n, high / n).clip(1e-300, 1 - 1e-16)
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(share > 0, share * np.log(share / p), 0.0)
        miss = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - p)), 0.0)
    return n * (hit + miss)


def _distances(sample: DrawSample) -> Iterator[Anomaly]:
    """The distribution function; then that of the fractions of the draws, cut into many intervals, which shows whether
    they take few values only."""
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
    split = np.floor(above) != whole  # says nothing of the fraction
    distance = _distance(np.where(split, 0.0, below - whole), np.where(split, 1.0, above - whole)) - width * scale
    if scale > 1 and distance > by_chance:
        text = f"{n} draws fall on a grid: in each {scale:.3g}th of their range the distribution function is off by "
        yield Anomaly("grid", f"{text}{distance:.3g}; by chance it is by {by_chance:.3g}", advice, 2 * n * distance**2)


def _distance(below: Array, above: Array) -> float:
    """How far the distribution function of uniform numbers, known to lie between these bounds, is at least off."""
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
    """Draws that coincide within a call at any distance, or in two calls at any shift."""
    heads = [sample.part(slice(0, HEAD)) for _, sample in calls]
    size = _transformed(max(map(len, heads)))
    spectra = [_Spectrum(calls[0][1], _transformed(len(calls[0][1])))] + [_Spectrum(head, size) for head in heads]
    pairs = [calls[0][0]] + [pair for pair, _ in calls]
    others = range(1, len(spectra))
    couples = [(i, i) for i in (0, *others[1:])] + list(combinations(others, 2))
    limit = math.log(2 * max(sum(len(spectra[i]) + len(spectra[j]) for i, j in couples), 1) / _SHARE)
    for i, j in couples:
        found = _coincidence(spectra[i], spectra[j], length, limit)
        if found is not None:
            yield _dependent(pairs[i], pairs[j], found)


def _transformed(length: int) -> int:
    """The size of a Fourier transform in which no two shifts of sequences of this length meet."""
    return 2 << max(length - 1, 1).bit_length()


class _Spectrum:
    """Draws as Fourier transforms of a size of their rarer events and of the bounds of their probabilities."""

    def __init__(self, sample: DrawSample, size: int) -> None:
        rare = sample.low + sample.high <= 1
        hits = np.where(rare, sample.hits, ~sample.hits).astype(float)
        low, high = np.where(rare, sample.low, 1 - sample.high), np.where(rare, sample.high, 1 - sample.low)
        self.length, self.size = len(sample), size
        self.values = [np.fft.rfft(x, size) for x in (hits, low, high)]

    def __len__(self) -> int:
        return self.length


def _coincidence(a: _Spectrum, b: _Spectrum, length: int, limit: float) -> _Coincidence | None:
    """The most surprising shift of two calls, or of one; None if it is no surprise."""
    n, m = len(a), len(b)
    shifts = np.arange(1, min(length, m)) if a is b else np.arange(1 - n, m)  # draw i of one, i + shift of the other
    if not len(shifts):
        return None
    hits, low, high = (np.fft.irfft(x.conj() * y, a.size)[shifts] for x, y in zip(a.values, b.values, strict=True))
    places = np.minimum(n, m - shifts) - np.maximum(0, -shifts)
    slack = _ROUNDING * places
    surprise = _surprise(np.rint(hits), places, (low - slack).clip(0), np.minimum(high + slack, places))
    surprise = surprise / 2 if a is b else surprise
    worst = int(surprise.argmax())
    if surprise[worst] <= limit:
        return None
    counts = (int(shifts[worst]), int(np.rint(hits[worst])), int(places[worst]))
    return _Coincidence(*counts, float((low + high)[worst] / 2), float(surprise[worst]))


@dataclass(frozen=True)
class _Coincidence:
    """At one shift: the places where rarer events coincide, the places there are, and how many were expected."""

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
    what = "pair" if seeds and offsets else "seed" if seeds else "offset"
    how = f"element i of one and element i{f' {at.shift:+d}' if at.shift else ''} of the other"
    text = f"calls with philox={a} and philox={b} have not been drawn independently, {how}: {both}"
    advices = {
        "seed": "use all 64 bits of seed as Philox's key",
        "offset": "use all 64 bits of offset as the counter's low words and the element's index as its high ones: "
        "offset + index makes calls overlap",
        "pair": "seed is the key and offset belongs into the counter; do not mix them",
    }
    return Anomaly(what, text, advices[what], at.surprise)
