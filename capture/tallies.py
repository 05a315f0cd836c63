"""Lock-free tallies for calls that only need counting, from several threads."""

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
    """Call counters for signatures, by phase.

    Consecutive steps with equal counts are passed to the signatures together, by `settle`.

    Attributes:
        known: Functions, by phase and operator id, that find a call's counter from its arguments. Calling the counter
            counts the call.
    """

    def __init__(self, by_key: ByKey = key_function) -> None:
        """Create tallies without counters. `by_key` makes the key functions."""
        self._by_key = by_key
        self.known: Known = {}
        self._counters: dict[tuple[str, int], dict[Hashable, Count]] = {}
        self._counted: list[tuple[SignatureCount, str]] = []  # each with its phase
        self._ticks: list[
            itertools.count[int]
        ] = []  # one for each entry above; `next` is atomic under the GIL, so no lock is needed
        self._next: list[int] = []  # the number that each yields next if nothing is counted
        self._calls: list[int] = []  # calls by entry in each step that is not passed on yet
        self._first = self._last = 0  # the range of these steps

    def anew(self) -> Tallies:
        """Return empty tallies with the same key functions."""
        return Tallies(self._by_key)

    def start(
        self, op: Any, phase: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], signature: SignatureCount
    ) -> None:
        """Count calls like this one from now on, if they have a key."""
        if type(op) is not OpOverload:  # other operators are called differently
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
        """Return the number of calls since the last drain, all in this step."""
        now = list(map(next, self._ticks))  # reading consumes a number as well
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
        """Pass the counts up to the last `drain` to the signatures."""
        if not self._calls:
            return
        by_signature: dict[int, tuple[SignatureCount, Counter[str]]] = {}
        # Entries may have been added since the drain.
        for (signature, phase), calls in zip(self._counted, self._calls, strict=False):
            if calls:
                by_signature.setdefault(id(signature), (signature, Counter()))[1][phase] += calls
        for signature, phases in by_signature.values():
            signature.count_alike(phases, self._first, self._last)
        self._calls = []


def _itself(key: Hashable) -> Hashable:
    return key
