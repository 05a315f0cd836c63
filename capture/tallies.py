"""Counting calls of which nothing else is wanted, from several threads and without a lock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch._ops import OpOverload

from capture.keys import Key, by_key
from traces.writer import SignatureCount

Count: TypeAlias = Callable[[], int]
Known: TypeAlias = dict[str, dict[int, Callable[..., Count | None]]]  # by phase, and by id of the overload


@dataclass(slots=True)
class _Tally:
    signature: SignatureCount
    phase: str
    ticks: itertools.count[int]
    drained: int = 0  # the number that it gives out first after the calls that are counted already


class Tallies:
    """Counters of signatures by phase. known: what finds the counter of a call by its arguments; to call it counts."""

    def __init__(self) -> None:
        self.known: Known = {}
        self._counters: dict[tuple[str, int], dict[Key, Count]] = {}
        self._tallies: list[_Tally] = []

    def start(
        self, op: Any, phase: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: SignatureCount
    ) -> None:
        """Count calls like this one from now on, if there is a key for them."""
        if type(op) is not OpOverload:  # others are not called alike
            return
        counters = self._counters.setdefault((phase, id(op)), {})
        with suppress(AttributeError, RuntimeError, TypeError):  # see by_key
            key: Key = by_key(op, tuple)(*args, **kwargs)
            if key not in counters:
                tally = _Tally(signature, phase, itertools.count())
                counters[key] = tally.ticks.__next__
                self._tallies.append(tally)
                self.known.setdefault(phase, {})[id(op)] = by_key(op, counters.get)

    def drain(self, step: int) -> int:
        """Hand what was counted since the last time on to the signatures; returns how many calls these were."""
        total = 0
        for tally in self._tallies:
            now = next(tally.ticks)  # reading gives out a number too
            calls = now - tally.drained
            tally.drained = now + 1
            if calls:
                tally.signature.count(tally.phase, step, calls)
                total += calls
        return total
