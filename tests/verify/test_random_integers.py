"""The laws of exponential, log-normal and Cauchy numbers, of integers, categories, permutations and random slopes.

ATen's own draws pass each, in every dtype; answers that contradict the law and draws of another one are refused.
"""

import math

import pytest
import torch
from shared import sampled

from verify.comparison import draws as random_tests
from verify.comparison.draws import ends, examine
from verify.comparison.laws import law_of

N = 13_000
PAIRS = [(5, 9), (5, 10), (6, 9), (5, 9 + (1 << 32)), (5 + (1 << 32), 9)]
WEIGHTS = torch.tensor([[0.1, 0.0, 0.5, 0.3, 0.1], [9.0, 1.0, 0.0, 4.0, 6.0]]).repeat(1000, 1)
MANY = torch.rand(2, 3000, generator=torch.Generator().manual_seed(1))
RATES = torch.rand(N, generator=torch.Generator().manual_seed(2)) * 12
NEGATIVE = -torch.rand(N, generator=torch.Generator().manual_seed(3))


def in_place(name, dtype=torch.float32, **arguments):
    def draw():
        return [getattr(torch.empty(N, dtype=dtype), f"{name}_")(*arguments.values())]

    return f"{name}_", arguments, draw


def integers(low, high, dtype=torch.int64):
    return "randint.low", {"low": low, "high": high}, lambda: [torch.randint(low, high, (N,), dtype=dtype)]


def categories(weights, samples, replacement):
    arguments = {"self": weights, "num_samples": samples, "replacement": replacement}
    return "multinomial", arguments, lambda: [torch.multinomial(weights, samples, replacement)]


def poisson(rates):
    return "poisson", {"self": rates}, lambda: [torch.poisson(rates)]


def permutation(n):
    return "randperm", {"n": n}, lambda: [torch.randperm(n)]


def slopes(given, low=0.125, high=1 / 3, training=True):
    noise = torch.full_like(given, 7.0)
    arguments = {"self": given, "noise": noise, "lower": low, "upper": high, "training": training}

    def draw():
        written = noise.clone()
        return [torch.ops.aten.rrelu_with_noise(given, written, low, high, training), written]

    return "rrelu_with_noise", arguments, draw


HALF, BRAIN, DOUBLE = torch.float16, torch.bfloat16, torch.float64
LAWS = {
    "exponential": in_place("exponential", lambd=1.5),
    "exponential of halves": in_place("exponential", HALF, lambd=0.5),
    "exponential of bfloat16": in_place("exponential", BRAIN, lambd=4.0),
    "exponential of doubles": in_place("exponential", DOUBLE, lambd=1.0),
    "log_normal": in_place("log_normal", mean=0.5, std=0.25),
    "log_normal of halves": in_place("log_normal", HALF, mean=1.0, std=2.0),
    "log_normal of bfloat16": in_place("log_normal", BRAIN, mean=1.0, std=2.0),
    "log_normal of doubles": in_place("log_normal", DOUBLE, mean=-3.0, std=0.1),
    "cauchy": in_place("cauchy", median=0.5, sigma=2.0),
    "cauchy of halves": in_place("cauchy", HALF, median=0.0, sigma=1.0),
    "cauchy of bfloat16": in_place("cauchy", BRAIN, median=-4.0, sigma=3.0),
    "cauchy of doubles": in_place("cauchy", DOUBLE, median=0.0, sigma=1.0),
    "geometric": in_place("geometric", p=0.3),
    "geometric of few": in_place("geometric", HALF, p=0.9),
    "geometric, long": in_place("geometric", BRAIN, p=0.002),
    "geometric of integers": in_place("geometric", torch.int32, p=0.05),
    "random of halves": ("random_", {}, lambda: [torch.empty(N, dtype=HALF).random_()]),
    "random of floats": ("random_", {}, lambda: [torch.empty(N).random_()]),
    "random of bytes": ("random_", {}, lambda: [torch.empty(N, dtype=torch.uint8).random_()]),
    "random of truth": ("random_", {}, lambda: [torch.empty(N, dtype=torch.bool).random_()]),
    "random of int64": ("random_", {}, lambda: [torch.empty(N, dtype=torch.int64).random_()]),
    "random from": (
        "random_.from",
        {"from": -7, "to": None},
        lambda: [torch.empty(N, dtype=torch.int32).random_(-7, None)],
    ),
    "random of all": (
        "random_.from",
        {"from": -(2**63), "to": None},
        lambda: [torch.empty(N, dtype=torch.int64).random_(-(2**63), None)],
    ),
    "two": integers(0, 2),
    "dice": integers(1, 7),
    "thousands": integers(-3000, 5000),
    "wide": integers(-(2**49), 2**49),
    "rounded": integers(0, 1000, BRAIN),
    "rounded, negative": integers(-100_00, 20_000, HALF),
    "with replacement": categories(WEIGHTS, 10, True),
    "with replacement, of many": categories(MANY, 5000, True),
    "without replacement": categories(WEIGHTS, 3, False),
    "without replacement, of many": categories(MANY, 200, False),
    "one category": categories(WEIGHTS, 1, False),
    "poisson": poisson(RATES),
    "poisson of one rate": poisson(torch.full((N,), 0.3)),
    "poisson, large": poisson(torch.full((N,), 4000.0, dtype=HALF)),
    "poisson of doubles": poisson(RATES.double() * 100),
    "permutation": permutation(N),
    "permutation of few": permutation(500),
    "small permutation": permutation(4),
    "slopes": slopes(NEGATIVE),
    "slopes of doubles": slopes(NEGATIVE.double(), 0.0, 1.0),
    "slopes of bfloat16": slopes(torch.cat([NEGATIVE, -NEGATIVE]).to(BRAIN)),
}


def drawn(name, change=lambda results: results):
    """What is wrong with five calls: the first contradiction, or the rule that their draws break; empty if nothing."""
    overload, arguments, draw = LAWS[name]
    law, samples = law_of(f"aten::{overload}"), []
    for pair in PAIRS:
        results = change(draw())
        contradiction = law.wrong(arguments, results)
        if contradiction:
            return contradiction
        samples.append(ends(law.sample({**arguments, "philox": pair}, results)))
    found = examine(list(zip(PAIRS, samples, strict=True)), len(samples[0]))
    return "" if found is None else found.rule


@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize("name", LAWS)
def test_atens_own_draws_pass(name):
    torch.manual_seed(11)
    assert drawn(name) == ""


RARE = ["exponential", "dice", "geometric", "without replacement", "permutation of few"]


@pytest.mark.parametrize("name", sampled(RARE, RARE[2::2]))  # the cheapest of numbers and of permutations
def test_false_alarms_are_as_rare_as_is_said(name, monkeypatch):
    """At a level where alarms could be counted they are no more than the level allows."""
    level, cases = 0.2, 20
    monkeypatch.setattr(random_tests, "_SHARE", level / 5)
    torch.manual_seed(0)
    assert sum(drawn(name) != "" for _ in range(cases)) <= level * cases


def of(results, change):
    return [change(results[0]), *results[1:]]


def other(name):
    """The draws of another law."""
    return lambda results: LAWS[name][2]()


def each(change):
    return lambda results: of(results, change)


def same(results):
    """What the first call drew."""
    return MEMORY.setdefault("", results)


def first(value):
    def change(out):
        out = out.clone()
        out.view(-1)[0] = value
        return out

    return each(change)


def sloped(by=None, noise=None):
    """rrelu's result times a number, or a number in its noise."""

    def change(results):
        out, drawn = (t.clone() for t in results)
        if by is not None:
            out *= by
        if noise is not None:
            drawn[0] = noise
        return [out, drawn]

    return change


INFINITE, MEMORY = math.inf, {}
FLAWS = {
    "negative": ("exponential", first(-1.0), "1 of 13000 elements are not positive and finite; the first is -1.0"),
    "zero": ("exponential", first(0.0), "are not positive and finite; the first is 0.0"),
    "infinite": ("exponential", first(INFINITE), "are not positive and finite; the first is inf"),
    "another rate": ("exponential", each(lambda x: x * 1.05), "distribution"),
    "rate for mean": ("exponential", each(lambda x: x * 1.5**2), "distribution share"),
    "repeats of exponential": ("exponential", each(lambda x: x[: N // 4].repeat(4)), "index"),
    "not positive": ("log_normal", first(-2.0), "are not positive and finite; the first is -2.0"),
    "another mean": ("log_normal", each(lambda x: x * 1.02), "mean distribution share"),
    "another deviation": ("log_normal", each(lambda x: x**1.1 * math.exp(-0.05)), "variance"),
    "normal": ("log_normal", each(lambda x: x.log().exp().sqrt()), "mean distribution share variance"),
    "not a number": ("cauchy", first(math.nan), "are not finite; the first is nan"),
    "infinite Cauchy": ("cauchy", first(INFINITE), "are not finite; the first is inf"),
    "another scale": ("cauchy", each(lambda x: x * 1.1 - 0.05), "distribution"),
    "another median": ("cauchy", each(lambda x: x + 0.1), "distribution share"),
    "normal for Cauchy": ("cauchy", each(lambda x: torch.randn(N) * 2 + 0.5), "distribution"),
    "no trial": ("geometric", first(0.0), "are no numbers of trials; the first is 0.0"),
    "a part of a trial": ("geometric", first(1.5), "are no numbers of trials; the first is 1.5"),
    "another p": ("geometric", each(lambda x: torch.empty(N).geometric_(0.32)), "share distribution"),
    "failures": ("geometric of integers", each(lambda x: x + 1), "share distribution"),
    "same trials": ("geometric", same, "seed offset pair"),
    "high is drawn": ("dice", first(7), "1 of 13000 elements are no integers of [1, 7); the first is 7.0"),
    "below low": ("dice", first(0), "are no integers of [1, 7); the first is 0.0"),
    "no integer": ("rounded", first(0.5), "are no integers of [0, 1000); the first is 0.5"),
    "loaded dice": ("dice", each(lambda x: torch.where((x == 6) & (torch.rand(N) < 0.1), 1, x)), "share distribution"),
    "never six": ("dice", other("five"), "share distribution"),
    "even alone": ("wide", each(lambda x: x // 2**40 * 2**40), "grid"),
    "the middle": ("thousands", each(lambda x: (x + x.roll(1)) // 2), "distribution"),
    "repeats": ("dice", each(lambda x: x[: N // 2].repeat(2)), "index"),
    "same dice": ("dice", same, "seed offset pair"),
    "no category": ("with replacement", first(5), "are no categories of 5; the first is 5.0"),
    "category of no weight": ("with replacement", first(1), "are categories of weight 0; the first is 1.0"),
    "equal shares": (
        "with replacement",
        each(lambda x: torch.multinomial((WEIGHTS > 0).float(), 10, True)),
        "share distribution",
    ),
    "weights of the other row": (
        "with replacement, of many",
        each(lambda x: torch.multinomial(MANY.flip(0), 5000, True)),
        "share distribution",
    ),
    "twice": ("without replacement", each(lambda x: torch.cat([x[:, :1], x[:, :1], x[:, 2:]], 1)), "a category twice"),
    "the likely ones first": ("without replacement", each(lambda x: most(x)), "share distribution"),
    "sorted": ("without replacement", each(lambda x: x.sort(1).values), "share distribution"),
    "same rows": ("with replacement", each(lambda x: x[:2].repeat(1000, 1)), "index"),
    "no number of events": ("poisson", first(0.5), "are no numbers of events; the first is 0.5"),
    "another rate of events": ("poisson", each(lambda x: torch.poisson(RATES * 1.03)), "share distribution"),
    "mean rate": ("poisson", each(lambda x: torch.poisson(torch.full((N,), 6.0))), "share distribution"),
    "rounded normal": (
        "poisson of one rate",
        each(lambda x: (torch.randn(N) * 0.3**0.5 + 0.3).clamp(min=0).round()),
        "share distribution",
    ),
    "no permutation": ("permutation", first(0), "the result is no permutation"),
    "identity": ("permutation", each(lambda x: torch.arange(N)), "share distribution index"),
    "rotations": ("permutation", each(lambda x: torch.arange(N).roll(int(x[0]))), "share distribution index"),
    "near their places": (
        "permutation",
        each(lambda x: (torch.arange(N) + torch.rand(N) * 9000).argsort()),
        "share distribution",
    ),
    "the same permutation": ("permutation", same, "seed offset pair"),
    "not input * noise": ("slopes", sloped(by=1.01), "are not input * noise"),
    "no slope": ("slopes", sloped(noise=0.5), "of the noise are not in [0.125, 0.333333]; the first is 0.5"),
    "noise of positive input": ("positive", sloped(noise=0.5), "of the noise are not 1, of an input that is positive"),
    "noise out of training": ("not in training", sloped(noise=0.2), "of the noise were changed out of training"),
    "another slope": ("not in training", sloped(by=2.0), "are not input * noise"),
    "the middle slope": ("slopes", lambda r: [NEGATIVE * 0.22, torch.full((N,), 0.22)], "distribution share grid"),
}
OTHERS = {"five": integers(1, 6), "positive": slopes(-NEGATIVE), "not in training": slopes(NEGATIVE, training=False)}


def most(out):
    """The category of most weight in the first place, if it is there at all."""
    weights = WEIGHTS.gather(1, out)
    return out.gather(1, weights.argsort(1, descending=True))


@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize("flaw", FLAWS)
def test_each_flaw_is_found(flaw, monkeypatch):
    torch.manual_seed(5)
    name, change, words = FLAWS[flaw]
    MEMORY.clear()
    for other_name, law in OTHERS.items():
        monkeypatch.setitem(LAWS, other_name, law)
    said = drawn(name, change)
    assert said and (words in said or said in words.split()), said


@pytest.mark.parametrize("name", OTHERS)
def test_others_pass(name, monkeypatch):
    monkeypatch.setitem(LAWS, name, OTHERS[name])
    assert drawn(name) == ""


@pytest.mark.parametrize("seed", sampled(range(5), [1]))
def test_calls_of_few_draws_are_not_spread_alike(seed):
    """Several of each pair's kind, of which many have the same draws."""
    torch.manual_seed(seed)
    weights = torch.tensor([0.02, 5.6, 4.5])
    law, arguments = law_of("aten::multinomial"), {"self": weights, "num_samples": 3, "replacement": False}
    calls = []
    for pair in PAIRS:
        several = [(pair[0], pair[1] + i * 1000) for i in range(200)]
        drawn_of = [{**arguments, "philox": p} for p in several]
        calls.append((pair, random_tests.pooled(law.sample(a, [torch.multinomial(weights, 3)]) for a in drawn_of)))
    assert examine(calls, 2) is None
