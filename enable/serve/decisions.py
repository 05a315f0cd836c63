"""Which calls a kernel serves, decided once for all calls that are alike; why it does not serve the others."""

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
    """Return True while this thread asks ATen for its error, so that no server may answer the call."""
    return getattr(_ASKING, "now", False)


class Decision(NamedTuple):
    """op: kept alive, since its id is in the key. entry: what serves, or None and a reason. gpu: the device's index.
    undrawn: why calls of it that draw are not served. tried: the keys of calls that were watched for a
    shortcut. news: what is new in the call to a kernel that was judged on others."""

    op: OpOverload
    entry: Entry | None
    reason: str
    gpu: int | None
    undrawn: str
    tried: list[Hashable]
    news: str


class Decisions:
    """Decides for the calls of one device, and remembers it by what makes calls alike."""

    def __init__(
        self,
        entry_of: Callable[[str], Entry | None],
        device: str,
        only_judged: bool,
        refuses: Refusal | None,
        on_clear: Callable[[], None],
    ) -> None:
        """Take the arguments of `Server`, with a quick `entry_of`; on_clear: called when all decisions are dropped."""
        self._entry_of, self._device, self._only_judged, self._refuses = entry_of, device, only_judged, refuses
        self._on_clear = on_clear
        self._kept: dict[Hashable, Decision] = {}

    def of(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Decision:
        """Return the decision for all calls that differ in nothing but the contents of tensors and in finite floats."""
        key = recorded_key(op, args, kwargs)
        decision = self._kept.get(key)
        if decision is None:
            if len(self._kept) >= MAX_DECISIONS:
                self._kept.clear()
                self._on_clear()
            decision = self._kept[key] = self._made(op, args, kwargs)
        return decision

    def decline(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str) -> None:
        """Serve no calls like this one from now on."""
        key = recorded_key(op, args, kwargs)
        self._kept[key] = self.of(op, args, kwargs)._replace(entry=None, reason=reason)

    def objection(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Why this one call is not served, whatever is decided for those like it; empty if there is no such reason.

        Memory that it writes may be shared, wherever that lies, and ATen may refuse what its tensors contain.
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
        entry, seen = self._entry_of(name_of(op)), Seen(self._device, op, args, kwargs)
        reason = _reason(entry, seen) or self._refused(op, args, kwargs)
        judged = None if reason or entry is None else entry.judged
        news = judged.news(kind_of(bind(op, args, kwargs))) if judged else ""
        reason = reason or (UNJUDGED.format(news) if news and self._only_judged else "")
        entry = None if reason else entry
        undrawn = self._undrawn(entry, frozenset(seen.dtypes)) if entry else ""
        return Decision(op, entry, reason, seen.index, undrawn, [], news)

    def _refused(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Why ATen takes no such calls, or may not, whatever they contain; empty if it does, or is asked about each."""
        if self._refuses is not None:
            return ""
        if refusal(op, args, kwargs):
            return REFUSED
        return CAST if casts(op, args, kwargs) else ""

    def _undrawn(self, entry: Entry, dtypes: frozenset[str]) -> str:
        """Why those of its calls that draw are not served; empty if they are.

        Attention's forward and backward drop the same if both are served, for which either has to tell it in advance:
        a call's dtypes are those of the queries, and float32, in which one hands the other its sums.
        """
        other = counterpart(entry.plan.overload)
        if entry.lawless or other is None:
            return LAWLESS if entry.lawless else ""
        pair = (entry, self._entry_of(other))
        served = all(e is not None and not e.lawless and not e.objection(dtypes | {"float32"}) for e in pair)
        return "" if served else UNPAIRED.format(other)


def _reason(entry: Entry | None, seen: Seen) -> str:
    if entry is None:
        return NO_KERNEL
    if seen.number:
        return NUMBER
    if seen.only_integers and not entry.takes_integers:
        return NO_INTEGERS
    return seen.elsewhere or entry.objection(frozenset(seen.dtypes))
