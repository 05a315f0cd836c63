"""Judge a kernel that draws random numbers: run the same case with several keys and counters.

The parent derives these from a hash of the kernel and the case, so that a kernel cannot know them and a verdict
is reproducible. Calls with neighbouring offsets and seeds, in their low and in their high words, are compared
with each other at every shift. Cases with few elements are run more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from blake3 import blake3

from traces.values import Packed, unpack
from verify.cases.case import Case, Expected, by_overload, case_of_values
from verify.cases.packed import same_bits
from verify.comparison import draws as random_tests
from verify.comparison.draws import Anomaly, DrawSample, Tally, ends, pooled
from verify.comparison.laws import arguments_of, law_of, results
from verify.contract.random_state import Philox

DRAWS = 1 << 16  # draws of a case, unless that takes more than `MOST_SERIES` series
MOST_SERIES = 4  # series of calls, with one call for each step in `_STEPS`
MANY = 1 << 17  # draws of a call that justifies MANY_DRAWS, which reveal shares that are off by a few thousandths
MANY_DRAWS = 1 << 20
ALL_DRAWS = 1 << 24  # draws in the largest call for a kernel that is to be accepted
# increments for seed and offset; the first is the case's own pair
_STEPS = ((0, 0), (0, 1), (1, 0), (0, 1 << 32), (1 << 32, 0))
# returns the answer to a pair, with the order of program instances given by a seed
Ask: TypeAlias = Callable[[Philox, int], Packed]


@dataclass(frozen=True)
class Pairs:
    """Keys and counters for one kernel and case."""

    kernel: str
    case: str

    def __getitem__(self, series: int) -> Philox:
        """Return the first pair of a series."""
        digest = blake3(f"{self.kernel} {self.case} {series}".encode()).digest()
        seed, offset = int.from_bytes(digest[:8], "little", signed=True), int.from_bytes(digest[8:13], "little")
        return seed, offset


def exhaustive(cases: Sequence[Case]) -> list[Case]:
    """Return the largest case of each overload with a law, to be judged on ALL_DRAWS draws.

    Overloads whose largest case has fewer than MANY elements are skipped.
    """
    enlarged_cases = []
    for overload, group in by_overload(cases).items() if cases else ():
        if law_of(overload) and _elements(case := max(map(_enlarged, group), key=_elements)) >= MANY:
            name = blake3(f"{case.id} {ALL_DRAWS}".encode()).hexdigest()[:32]
            enlarged_cases.append(replace(case, id=name, draws=ALL_DRAWS))
    return enlarged_cases


def _enlarged(case: Case) -> Case:
    """Return the case with MANY elements if its size is an argument, as in `rand`."""
    arguments = unpack(case.load())
    if case.shapes or "size" not in arguments:
        return case
    larger = case_of_values(case.overload, **{**arguments, "size": [MANY]})
    return replace(larger, signature=f"{MANY} elements", shapes=((MANY,),))


def _elements(case: Case) -> int:
    return max(map(math.prod, case.shapes), default=0)


def examine(expected: Expected, first: Packed, pairs: Pairs, ask: Ask, extra: int = 0) -> Anomaly | None:
    """Return an anomaly in the draws of a case, or None.

    The first answer, to `pairs[0]`, contains no other error.

    Args:
        expected: ATen's answer.
        first: The kernel's first answer.
        pairs: Keys and counters.
        ask: Function that returns the answer to a pair; its errors propagate.
        extra: How many further draws to count after the usual comparisons.
    """
    law = law_of(expected.overload)
    assert law is not None
    arguments = arguments_of(expected)

    def sample(answer: Packed, pair: Philox) -> DrawSample:
        return ends(law.sample({**arguments, "philox": pair}, results(expected, answer)))

    again = ask(pairs[0], 1)
    if not all(map(same_bits, results(expected, first), results(expected, again))):
        text = f"philox={pairs[0]} gave other draws when the programs of the grid ran in another order"
        return Anomaly("reproducible", text, "draw from philox and the element's index alone")
    length = len(sample(first, pairs[0]))
    if not length:
        return None
    few = min(MOST_SERIES, math.ceil(DRAWS / (length * len(_STEPS))))
    series = few if length < MANY else math.ceil(MANY_DRAWS / length)
    samples: list[list[DrawSample]] = [[] for _ in _STEPS]
    for number in range(series):
        seed, offset = pairs[number]
        for step, (by_seed, by_offset) in zip(samples, _STEPS, strict=True):
            pair = (_wrapped(seed + by_seed), offset + by_offset)
            step.append(sample(first if pair == pairs[0] else ask(pair, 0), pair))
    calls = [pooled(step) for step in samples]
    seed, offset = pairs[0]
    shifted = [(_wrapped(seed + s), offset + o) for s, o in _STEPS]
    anomaly = random_tests.examine(list(zip(shifted, calls, strict=True)), length)
    if anomaly is not None or not extra:
        return anomaly
    tally = Tally()
    for number in range(series, series + math.ceil(extra / length)):
        tally.add(sample(ask(pairs[number], 0), pairs[number]))
    return tally.examine()


def _wrapped(seed: int) -> int:
    """Wrap a seed to a signed 64-bit integer."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)
