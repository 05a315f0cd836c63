"""ATen as the oracle that decides if a call is valid, asked in a child process.

A call that crashes ATen costs only that child. The child runs verify/cases/trial.py.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

from traces.subgraphs import definitions
from traces.values import Packed, pack
from verify.cases.arguments import Arguments, fits, tensors
from verify.cases.packed import digest_of, placed
from verify.contract.random_state import Philox
from verify.platforms import TRIAL
from verify.sandbox import confine, wire
from verify.sandbox.children import Child, ChildDied, Zygote
from verify.sandbox.nursery import TRIED

SECONDS = 20.0  # time limit for a call with some thousands of elements
_MEMORY = 2 << 30  # bytes that a child may allocate beyond torch's own memory

Place: TypeAlias = tuple[str, int | None, int]  # an argument, the list index if it is a list, and a dimension

_LOCK = threading.Lock()
_MOST_ANSWERS = 1 << 16  # a few MB
# ATen's answers, by call and places. The trials of one overload share most of their calls, as in a campaign.
_IDLE: dict[tuple[str, tuple[Place, ...]], list[int] | None] = {}


class Trusted:
    """A zygote process and its current child, both started on the first request.

    Only ATen runs there, which is trusted, so the child is not sandboxed. One thread may use an instance at a
    time.
    """

    def __init__(self, runner: str, memory_bytes: int, seconds: float) -> None:
        self._runner, self._memory, self._seconds = runner, memory_bytes, seconds
        self._zygote: Zygote | None = None
        self._child: Child | None = None

    def ask(self, packed: Packed, request: dict[str, Any]) -> tuple[dict[str, Any], Packed]:
        """Send a call to the child and return its reply.

        Raises:
            ChildDied: The child crashed or exceeded the time limit.
            RuntimeError: The request raised an exception in the child.
        """
        if self._zygote is None:
            self._zygote = Zygote(TRIAL, confine.NONE, runner=self._runner)
            atexit.register(self.close)
        if self._child is None:
            self._child = self._zygote.fork({"memory_bytes": self._memory})
        try:
            reply, buffers = self._child.ask(packed, self._seconds, request)
        except ChildDied:
            self._end_child()
            raise
        if reply["status"] != "ok":
            raise RuntimeError(reply["text"])
        return reply, wire.packed_of(reply, buffers, "answer")

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
    """Return the request fields that describe an overload."""
    return {"overload": overload, "subgraphs": definitions(overload)}


def stands(overload: str, arguments: Arguments) -> bool:
    """Return True if ATen gives a sound answer to the call (verify/cases/trial.py) and it is small enough to judge."""
    return idle(overload, arguments, ()) is not None


def idle(overload: str, arguments: Arguments, places: Sequence[Place]) -> list[int] | None:
    """Return the indices of the places whose last elements do not affect the answer.

    Return None if ATen gives no sound answer.
    """
    if not all(fits(overload, t.shape) and not t.is_meta for t in tensors(arguments)):
        return None
    packed = placed(pack(arguments))
    key = digest_of(overload, packed), tuple(places)
    with _LOCK:
        if key in _IDLE:
            return _IDLE[key]
        try:
            reply, _ = _ORACLE.ask(packed, {**_asked(overload), "places": places})
        except (ChildDied, RuntimeError):  # the child cannot even rebuild the call, or the machine is too busy
            return None
        if len(_IDLE) >= _MOST_ANSWERS:
            _IDLE.clear()
        return _IDLE.setdefault(key, reply["idle"] if reply["stands"] else None)


def refusal(overload: str, arguments: Arguments) -> str:
    """Return ATen's reason for refusing the call.

    Return an empty string if ATen answers the call, does not implement it, or crashes on it.
    """
    with _LOCK:
        try:
            reply, _ = _ORACLE.ask(pack(arguments), {**_asked(overload), "philox": [0, 0]})
        except (ChildDied, RuntimeError):  # the child cannot even rebuild the call
            return ""
    reason = " ".join(reply["error"].split())
    return "" if "not implemented" in reason else reason[:200]


def answered(overload: str, packed: Packed, philox: Philox) -> Packed:
    """Return ATen's answer to a generated call, in the format used by `aten_answer` in verify/cases/case.py.

    Raises:
        RuntimeError: ATen refuses the call, or the child died.
    """
    with _LOCK:
        try:
            reply, answer = _ORACLE.ask(packed, {**_asked(overload), "philox": list(philox)})
        except ChildDied as death:
            raise RuntimeError(f"the process that asked it {death.how}") from death
    if reply["error"]:
        raise RuntimeError(reply["error"])
    return answer
