"""Fork handling: recorders in a forked child must not touch the parent's traces."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class _Forked(Protocol):
    def _after_fork(self) -> None: ...


_watched: weakref.WeakSet[_Forked] = weakref.WeakSet()


def watch(recorder: _Forked) -> None:
    """Call `_after_fork` on this object in each process forked from now on, as long as the object lives."""
    _watched.add(recorder)


def _after_fork() -> None:
    for recorder in _watched:
        recorder._after_fork()


os.register_at_fork(after_in_child=_after_fork)
