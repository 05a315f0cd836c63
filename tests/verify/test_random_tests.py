"""The tests of draws: right ones pass, each flaw is found, and false alarms are as rare as is said."""

import itertools
import math

import numpy as np
import pytest
import torch
from shared import sampled

from verify.comparison import draws as random_tests
from verify.comparison.draws import DrawSample, Tally, examine
from verify.comparison.lawful import events as chances
from verify.comparison.lawful import numbers

N = 13_000
PAIRS = [(5, 9), (5, 10), (6, 9), (5, 9 + (1 << 32)), (5 + (1 << 32), 9)]


def events(hits, p):
    return chances(torch.as_tensor(hits), torch.full((len(hits),), float(p), dtype=torch.float64))


def bernoulli(p):
    return lambda generator, n=N: events(generator.random(n) < p, p)


def uniform(generator, n=N):
    return numbers(torch.from_numpy(generator.random(n)), 2.0**-22)


def normal(generator, n=N, scale=1.0):
    z = generator.standard_normal(n) * scale
    exact = torch.special.ndtr(torch.from_numpy(z)).numpy()
    half = np.full(n, 0.5)
    return DrawSample(z < 0, half, half, exact - 1e-6, exact + 1e-6, z, np.abs(z) * 2.0**-23)


LAWS = {"bernoulli .8": bernoulli(0.8), "bernoulli .01": bernoulli(0.01), "uniform": uniform, "normal": normal}


def verdict(samples):
    return examine(list(zip(PAIRS, samples, strict=True)), len(samples[0]))


NUMBERS = list(itertools.product((1, 7, N, random_tests.MOST + 5), LAWS))
IN_CI = [(n, law) for n, law in NUMBERS if n <= N or law == "bernoulli .01"]  # of many those that are cheapest


@pytest.mark.parametrize(("n", "law"), sampled(NUMBERS, IN_CI))
def test_right_draws_pass(law, n):
    generator = np.random.default_rng(n)
    for _ in range(5 if n <= N else 1):
        assert verdict([random_tests.ends(LAWS[law](generator, n)) for _ in PAIRS]) is None


@pytest.mark.parametrize("law", LAWS)
def test_false_alarms_are_as_rare_as_is_said(law, monkeypatch):
    """At a level where alarms could be counted they are no more than the level allows."""
    level, cases = 0.2, 100
    monkeypatch.setattr(random_tests, "_SHARE", level / 5)
    generator = np.random.default_rng(0)
    alarms = sum(verdict([LAWS[law](generator, 500) for _ in PAIRS]) is not None for _ in range(cases))
    assert alarms <= level * cases


def periodic(generator):
    return [events(np.tile(generator.random(1024) < 0.3, 13), 0.3) for _ in PAIRS]


def shifted(generator):
    long = generator.random(2 * N)
    return [numbers(torch.from_numpy(long[i * 4 : i * 4 + N].copy()), 2.0**-22) for i in range(len(PAIRS))]


def equal_where(same):
    """Samples of which those of these pairs are one and the same."""

    def make(generator):
        samples = [uniform(generator) for _ in PAIRS]
        for i in same[1:]:
            samples[i] = samples[same[0]]
        return samples

    return make


def opposite(generator):
    u = torch.from_numpy(generator.random(N))
    return [numbers(u if i == 0 else 1 - u if i == 1 else torch.rand(N).double(), 2.0**-22) for i in range(5)]


def far(generator):
    """The draws of a call begin again after 2^17."""
    first = generator.random(1 << 17)
    again = numbers(torch.from_numpy(np.concatenate([first, first])), 2.0**-22)
    return [again, *(uniform(generator) for _ in PAIRS[1:])]


FLAWS = {
    "share": ("share", lambda g: [events(g.random(N) < 0.77, 0.8) for _ in PAIRS]),
    "share of a part": ("share", lambda g: [events((g.random(N) < 0.8) | (np.arange(N) < 2500), 0.8) for _ in PAIRS]),
    "period": ("index", periodic),
    "one bit for four": ("index", lambda g: [events((g.random(N) < 0.1).repeat(4), 0.1) for _ in PAIRS]),
    "begins again": ("index", far),
    "seed": ("seed", equal_where([0, 2])),
    "offset": ("offset", equal_where([0, 1])),
    "high word of seed": ("seed", equal_where([0, 4])),
    "high word of offset": ("offset", equal_where([0, 3])),
    "sum of both": ("pair", equal_where([1, 2])),
    "overlap": ("offset", shifted),
    "opposite": ("offset", opposite),
    "16 values": (
        "grid",
        lambda g: [numbers(torch.from_numpy(np.floor(g.random(N) * 16) / 16), 2.0**-22) for _ in PAIRS],
    ),
    "4096 values": (
        "grid",
        lambda g: [numbers(torch.from_numpy(np.floor(g.random(N) * 4096) / 4096), 2.0**-22) for _ in PAIRS],
    ),
    "mean": ("mean", lambda g: [shift_of(normal(g), 0.04) for _ in PAIRS]),
    "variance": ("variance", lambda g: [normal(g, scale=math.sqrt(1.1)) for _ in PAIRS]),
    "uniform for normal": ("distribution", lambda g: [stretched(g) for _ in PAIRS]),
}


def shift_of(sample, by):
    return DrawSample(
        sample.hits, sample.low, sample.high, sample.below, sample.above, sample.normal + by, sample.rounding
    )


def stretched(generator):
    z = (generator.random(N) - 0.5) * math.sqrt(12)
    exact = torch.special.ndtr(torch.from_numpy(z)).numpy()
    half = np.full(N, 0.5)
    return DrawSample(z < 0, half, half, exact - 1e-6, exact + 1e-6, z, np.zeros(N))


@pytest.mark.parametrize("flaw", FLAWS)
def test_each_flaw_is_found(flaw):
    rule, make = FLAWS[flaw]
    found = verdict(make(np.random.default_rng(1)))
    assert found is not None and found.rule == rule, found
    assert "\n" not in found.detail and found.advice


def tallied(make, calls=32, length=1 << 17):
    tally, generator = Tally(), np.random.default_rng(2)
    for _ in range(calls):
        tally.add(make(generator, length))
    return tally.examine()


def cut_below(generator, n):
    """What DrawSample holds of a uniform draw that is never under 2^-12: by shares and distances nothing is wrong."""
    return numbers(torch.from_numpy(np.maximum(generator.random(n), 2.0**-12)), 2.0**-22)


def cut_above(generator, n):
    return numbers(torch.from_numpy(np.minimum(generator.random(n), 1 - 2.0**-12)), 2.0**-22)


def too_many(generator, n):
    return events(generator.random(n) < 0.802, 0.8)


@pytest.mark.parametrize("law", LAWS)
def test_right_draws_pass_however_many(law):
    assert tallied(LAWS[law]) is None


@pytest.mark.parametrize(
    ("make", "rule", "words"),
    [(cut_below, "tail", "low tail"), (cut_above, "tail", "high tail"), (too_many, "share", "0.80")],
    ids=["low", "high", "share"],
)
def test_many_draws_show_what_few_do_not(make, rule, words):
    few = verdict([make(np.random.default_rng(i), N) for i in range(len(PAIRS))])
    many = tallied(make)
    assert few is None and many is not None and (many.rule, words in many.detail) == (rule, True), (few, many)
