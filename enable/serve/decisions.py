"""Decide once per call signature which kernel serves the call, or why none does.

`Server` asks `Decisions` for each call. A decision is cached under the call's key, which leaves out tensor contents and
the values of finite floats.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeAlias

from torch._ops import OpOverload

from enable.serve.arguments import NUMBER, Seen, casts, refusal
from enable.serve.entries import Entry
from enable.serve.overlap import overlaps
from traces.call_keys import recorded_key
from traces.overloads import bind, counterpart, name_of
from verify.cases.kinds import kind_of

NO_KERNEL = "no kernel"
NO_INTEGERS = "the kernel's DTYPES list no integers"
UNJUDGED = "never judged on such a call: {}"
LAWLESS = "it draws random numbers here, and there is no law to judge them by"
UNPAIRED = "its dropout has to be that of {}, which is not served"
REFUSED = "arguments that ATen refuses"
OVERLAP = "memory that it writes holds another of its elements"
CAST = "out= of another dtype than the result"
MAX_DECISIONS = 1 << 16

Refusal: TypeAlias = Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], Exception | None]


_ASKING = threading.local()


def asking() -> bool:
    """Return True while this thread asks ATen for its error; no server may answer the call then."""
    return getattr(_ASKING, "now", False)


class Decision(NamedTuple):
    """How calls with one key are handled.

    Attributes:
        op: The overload; the reference keeps it alive, because the key contains its id.
        entry: The entry that serves the calls, or None with a reason.
        reason: Why no kernel serves the calls; empty if one does.
        gpu: Device index.
        undrawn: Why calls that draw random numbers are not served; empty if they are.
        tried: Keys of calls that were watched for a shortcut.
        news: Properties of the call on which the kernel was never judged; empty if there are none.
    """

    op: OpOverload
    entry: Entry | None
    reason: str
    gpu: int | None
    undrawn: str
    tried: list[Hashable]
    news: str


class Decisions:
    """Caches decisions for the calls on one device by call key."""

    def __init__(
        self,
        entry_of: Callable[[str], Entry | None],
        device: str,
        only_judged: bool,
        refuses: Refusal | None,
        on_clear: Callable[[], None],
    ) -> None:
        """Take the arguments of `Server`, with a cheap `entry_of`; call `on_clear` when all decisions are dropped."""
        self._entry_of, self._device, self._only_judged, self._refuses = entry_of, device, only_judged, refuses
        self._on_clear = on_clear
        self._kept: dict[Hashable, Decision] = {}

    def of(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Decision:
        """Return the decision for all calls that differ only in tensor contents and in finite floats."""
        key = recorded_key(op, args, kwargs)
        decision = self._kept.get(key)
        if decision is None:
            if len(self._kept) >= MAX_DECISIONS:
                self._kept.clear()
                self._on_clear()
            decision = self._kept[key] = self._made(op, args, kwargs)
        return decision

    def decline(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str) -> None:
        """Stop serving calls with the same key as this one."""
        key = recorded_key(op, args, kwargs)
        self._kept[key] = self.of(op, args, kwargs)._replace(entry=None, reason=reason)

    def objection(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return why this single call is not served, whatever its cached decision says; empty if there is no reason.

        Two checks depend on the single call: written memory may overlap, and ATen may refuse the tensors' contents.
        """
        if overlaps(op, args, kwargs):
            return OVERLAP
        if self._refuses is None:
            return ""
        _ASKING.now = True
        try:
            return REFUSED if self._refuses(op, args, kwargs) else ""
        finally:
            _ASKING.now = False

    def _made(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Decision:
        entry, facts = self._entry_of(name_of(op)), Seen(self._device, op, args, kwargs)
        reason = _reason(entry, facts) or self._refused(op, args, kwargs)
        judged = None if reason or entry is None else entry.judged
        news = judged.news(kind_of(bind(op, args, kwargs))) if judged else ""
        reason = reason or (UNJUDGED.format(news) if news and self._only_judged else "")
        entry = None if reason else entry
        undrawn = self._undrawn(entry, frozenset(facts.dtypes)) if entry else ""
        return Decision(op, entry, reason, facts.index, undrawn, [], news)

    def _refused(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return why ATen refuses all calls with this key; empty if it accepts them or is asked about each call."""
        if self._refuses is not None:
            return ""
        if refusal(op, args, kwargs):
            return REFUSED
        return CAST if casts(op, args, kwargs) else ""

    def _undrawn(self, entry: Entry, dtypes: frozenset[str]) -> str:
        """Return why calls that draw random numbers are not served; empty if they are.

        Attention's forward and backward drop the same elements only if both are served, so each checks the other in
        advance. A call's dtypes are those of the queries. float32 is added because the forward passes its sums to the
        backward in that dtype.
        """
        other_overload = counterpart(entry.plan.overload)
        if entry.lawless or other_overload is None:
            return LAWLESS if entry.lawless else ""
        pair = (entry, self._entry_of(other_overload))
        served = all(e is not None and not e.lawless and not e.objection(dtypes | {"float32"}) for e in pair)
        return "" if served else UNPAIRED.format(other_overload)


def _reason(entry: Entry | None, seen: Seen) -> str:
    """Return the reason against serving, from the entry and the arguments alone; empty if there is none."""
    if entry is None:
        return NO_KERNEL
    if seen.number:
        return NUMBER
    if seen.only_integers and not entry.takes_integers:
        return NO_INTEGERS
    return seen.elsewhere or entry.objection(frozenset(seen.dtypes))
