"""Counting calls of which nothing else is wanted, from several threads and without a lock."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from operator import sub
from typing import Any, TypeAlias

from torch._ops import OpOverload

from capture.keys import ByKey
from traces.call_keys import key_function
from traces.counts import SignatureCount

Count: TypeAlias = Callable[[], int]
Known: TypeAlias = dict[str, dict[int, Callable[..., Count | None]]]  # by phase, and by id of the overload


class Tallies:
    """Counters of signatures by phase. known: what finds the counter of a call by its arguments; to call it counts.

    Steps whose calls are the same are handed on to the signatures together, by `settle`. by_key: how keys are made.
    """

    def __init__(self, by_key: ByKey = key_function) -> None:
        self._by_key = by_key
        self.known: Known = {}
        self._counters: dict[tuple[str, int], dict[Hashable, Count]] = {}
        self._counted: list[tuple[SignatureCount, str]] = []  # with the phase
        self._ticks: list[itertools.count[int]] = []  # of each
        self._next: list[int] = []  # that each gives out if nothing is counted
        self._calls: list[int] = []  # of each in every step of those that are not yet handed on
        self._first = self._last = 0  # of these

    def anew(self) -> Tallies:
        """Of none yet, by the same keys."""
        return Tallies(self._by_key)

    def start(
        self, op: Any, phase: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: SignatureCount
    ) -> None:
        """Count calls like this one from now on, if there is a key for them."""
        if type(op) is not OpOverload:  # others are not called alike
            return
        counters = self._counters.setdefault((phase, id(op)), {})
        with suppress(AttributeError, RuntimeError, TypeError):  # see key_function
            key = self._by_key(op, _itself)(*args, **kwargs)
            if key not in counters:
                ticks = itertools.count()
                counters[key] = ticks.__next__
                self._ticks.append(ticks)
                self._next.append(0)
                self._counted.append((signature, phase))
                self.known.setdefault(phase, {})[id(op)] = self._by_key(op, counters.get)

    def drain(self, step: int) -> int:
        """How many calls were counted since the last time, all of this step."""
        now = list(map(next, self._ticks))  # reading gives out a number too
        calls: list[int] = list(map(sub, now, self._next))
        self._next = [number + 1 for number in now]
        total = sum(calls)
        if total:
            if step != self._last + 1 or calls != self._calls:
                self.settle()
                self._first, self._calls = step, calls
            self._last = step
        return total

    def settle(self) -> None:
        """Hand what was counted up to the last `drain` on to the signatures."""
        if not self._calls:
            return
        found: dict[int, tuple[SignatureCount, Counter[str]]] = {}
        for (signature, phase), calls in zip(self._counted, self._calls, strict=False):  # some may be newer
            if calls:
                found.setdefault(id(signature), (signature, Counter()))[1][phase] += calls
        for signature, phases in found.values():
            signature.count_alike(phases, self._first, self._last)
        self._calls = []


def _itself(key: Hashable) -> Hashable:
    return key
