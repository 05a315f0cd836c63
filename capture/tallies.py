"""Counting calls of which nothing else is wanted, from several threads and without a lock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from traces.writer import SignatureCount


@dataclass(slots=True)
class _Tally:
    signature: SignatureCount
    phase: str
    ticks: itertools.count[int]
    drained: int = 0  # the number that it gives out first after the calls that are counted already

    def drain(self) -> int:
        """How many calls came since the last time. Reading gives out a number too."""
        now = next(self.ticks)
        calls = now - self.drained
        self.drained = now + 1
        return calls


class Tallies:
    """Counters of signatures by phase. count: what to call at each call, by its key."""

    def __init__(self) -> None:
        self.count: dict[Hashable, Callable[[], int]] = {}
        self._tallies: list[_Tally] = []

    def start(self, key: Hashable, signature: SignatureCount, phase: str) -> None:
        """Count under this key from now on."""
        if key not in self.count:
            tally = _Tally(signature, phase, itertools.count())
            self._tallies.append(tally)
            self.count[key] = tally.ticks.__next__

    def drain(self, step: int) -> int:
        """Hand what was counted since the last time on to the signatures; returns how many calls these were."""
        total = 0
        for tally in self._tallies:
            calls = tally.drain()
            if calls:
                tally.signature.count(tally.phase, step, calls)
                total += calls
        return total
