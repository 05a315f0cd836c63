"""Judging a kernel that draws: the same case with several keys and counters.

The parent chooses these by a hash of the kernel and the case, so that a kernel cannot know them and a verdict can be
had again. Calls with neighbouring offsets and seeds, in their low words and in their high ones, are compared with each
other at every shift. Cases of few elements are asked for more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from blake3 import blake3

from traces.values import Packed, unpack
from verify.cases.case import Case, Expected, by_overload, case_of_values, same_bits
from verify.comparison import draws as random_tests
from verify.comparison.draws import Anomaly, DrawSample, Tally, ends, pooled
from verify.comparison.laws import arguments_of, law_of, results
from verify.contract.random_state import Philox

DRAWS = 1 << 16  # of a case, unless that takes more than `MOST_SERIES` series
MOST_SERIES = 4  # of calls, one for each of `_STEPS`
MANY = 1 << 17  # draws of a call that is worth more: then shares show that are off by a few thousandths
MANY_DRAWS = 1 << 20
ALL_DRAWS = 1 << 24  # of the largest call of a kernel that is to be accepted
_STEPS = ((0, 0), (0, 1), (1, 0), (0, 1 << 32), (1 << 32, 0))  # to seed and offset; the first is the case's own
Ask: TypeAlias = Callable[[Philox, int], Packed]  # the answer to a pair, with the programs in an order of this seed


@dataclass(frozen=True)
class Pairs:
    """The keys and counters of one case of one kernel."""

    kernel: str
    case: str

    def __getitem__(self, series: int) -> Philox:
        """The first pair of a series."""
        digest = blake3(f"{self.kernel} {self.case} {series}".encode()).digest()
        seed, offset = int.from_bytes(digest[:8], "little", signed=True), int.from_bytes(digest[8:13], "little")
        return seed, offset


def exhaustive(cases: Sequence[Case]) -> list[Case]:
    """Of each overload with a law the largest case, to be judged by ALL_DRAWS; none if that has fewer than MANY."""
    found = []
    for overload, several in by_overload(cases).items() if cases else ():
        if law_of(overload) and _elements(case := max(map(_enlarged, several), key=_elements)) >= MANY:
            name = blake3(f"{case.id} {ALL_DRAWS}".encode()).hexdigest()[:32]
            found.append(replace(case, id=name, draws=ALL_DRAWS))
    return found


def _enlarged(case: Case) -> Case:
    """The same with many elements where the size is a number, as of `rand`."""
    arguments = unpack(case.load())
    if case.shapes or "size" not in arguments:
        return case
    larger = case_of_values(case.overload, **{**arguments, "size": [MANY]})
    return replace(larger, signature=f"{MANY} elements", shapes=((MANY,),))


def _elements(case: Case) -> int:
    return max(map(math.prod, case.shapes), default=0)


def examine(expected: Expected, first: Packed, pairs: Pairs, ask: Ask, wanted: int = 0) -> Anomaly | None:
    """What speaks against the draws of a case whose first answer, to `pairs[0]`, contradicts nothing.

    ask: raises whatever shall end it. wanted: so many draws are counted, beside what the usual ones are compared by.
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
    found: list[list[DrawSample]] = [[] for _ in _STEPS]
    for number in range(series):
        seed, offset = pairs[number]
        for step, (by_seed, by_offset) in zip(found, _STEPS, strict=True):
            pair = (_wrapped(seed + by_seed), offset + by_offset)
            step.append(sample(first if pair == pairs[0] else ask(pair, 0), pair))
    calls = [pooled(step) for step in found]
    seed, offset = pairs[0]
    named = [(_wrapped(seed + s), offset + o) for s, o in _STEPS]
    found_usual = random_tests.examine(list(zip(named, calls, strict=True)), length)
    if found_usual is not None or not wanted:
        return found_usual
    tally = Tally()
    for number in range(series, series + math.ceil(wanted / length)):
        tally.add(sample(ask(pairs[number], 0), pairs[number]))
    return tally.examine()


def _wrapped(seed: int) -> int:
    """As a signed integer of 64 bits."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)
