"""ATen as the oracle of what is valid, asked in a child: a call that brings it down costs that child alone."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

from traces.subgraphs import definitions
from traces.values import Packed, pack
from verify.cases.arguments import Arguments, fits, tensors
from verify.contract.random_state import Philox
from verify.platforms import TRIAL
from verify.sandbox import confine, wire
from verify.sandbox.children import Child, ChildDied, Zygote
from verify.sandbox.nursery import TRIED

SECONDS = 20.0  # for a call of some thousands of elements
_MEMORY = 2 << 30  # bytes that a child may take beyond what torch has

Place: TypeAlias = tuple[str, int | None, int]  # an argument, an item of it if it is a list, and a dimension

_LOCK = threading.Lock()


class Trusted:
    """A process and its present child, started when first asked. ATen is trusted, so nothing confines them.

    runner: what answers there; memory_bytes: that a child may take beyond what torch has; seconds: for an answer. For
    one thread at a time.
    """

    def __init__(self, runner: str, memory_bytes: int, seconds: float) -> None:
        self._runner, self._memory, self._seconds = runner, memory_bytes, seconds
        self._zygote: Zygote | None = None
        self._child: Child | None = None

    def ask(self, packed: Packed, request: dict[str, Any]) -> tuple[dict[str, Any], Packed]:
        """A reply of the child to a call. Raises ChildDied, and RuntimeError for what was raised there."""
        if self._zygote is None:
            self._zygote = Zygote(TRIAL, confine.NONE, runner=self._runner)
            atexit.register(self.close)
        if self._child is None:
            self._child = self._zygote.fork({"memory_bytes": self._memory})
        try:
            told, buffers = self._child.ask(packed, self._seconds, request)
        except ChildDied:
            self._end_child()
            raise
        if told["status"] != "ok":
            raise RuntimeError(told["text"])
        return told, wire.packed_of(told, buffers, "answer")

    def close(self) -> None:
        self._end_child()
        if self._zygote is not None:
            self._zygote.close()

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.__exit__(None, None, None)
            self._child = None


_ORACLE = Trusted(TRIED, _MEMORY, SECONDS)


def _asked(overload: str) -> dict[str, Any]:
    """What the child has to know of an overload."""
    return {"overload": overload, "subgraphs": definitions(overload)}


def stands(overload: str, arguments: Arguments) -> bool:
    """Whether ATen has a sound answer to the call (verify/cases/trial.py), which is small enough to be judged."""
    return idle(overload, arguments, ()) is not None


def idle(overload: str, arguments: Arguments, places: Sequence[Place]) -> list[int] | None:
    """Indices of the places whose last elements do not matter to the answer; None if there is no sound one."""
    if not all(fits(overload, t.shape) and not t.is_meta for t in tensors(arguments)):
        return None
    with _LOCK:
        try:
            told, _ = _ORACLE.ask(pack(arguments), {**_asked(overload), "places": places})
        except (ChildDied, RuntimeError):  # what cannot even be looked at
            return None
    return told["idle"] if told["stands"] else None


def refusal(overload: str, arguments: Arguments) -> str:
    """Why ATen refuses the call; nothing if it answers it, has no implementation of it, or dies of it."""
    with _LOCK:
        try:
            told, _ = _ORACLE.ask(pack(arguments), {**_asked(overload), "philox": [0, 0]})
        except (ChildDied, RuntimeError):  # what cannot even be looked at
            return ""
    why = " ".join(told["error"].split())
    return "" if "not implemented" in why else why[:200]


def answered(overload: str, packed: Packed, philox: Philox) -> Packed:
    """ATen's own answer to a call that nobody is known to have made, as `aten_answer` of verify/cases/case.py gives it.

    Raises RuntimeError where there is none.
    """
    with _LOCK:
        try:
            told, answer = _ORACLE.ask(packed, {**_asked(overload), "philox": list(philox)})
        except ChildDied as death:
            raise RuntimeError(f"the process that asked it {death.how}") from death
    if told["error"]:
        raise RuntimeError(told["error"])
    return answer
