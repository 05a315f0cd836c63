"""Programs that run while another one is in its midst, as on a GPU; the interpreter would end each before the next.

A program is interrupted by whole others, at an atomic: there it may be that kernels wait, count or lock. What it sees
and leaves then is not what programs one after the other do. One that waits for the interrupted program is taken back.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Sequence

from verify.child.accesses import Launch
from verify.child.unspecified import unspecified

MOST = 16  # interruptions of one launch
MOST_BYTES = 1 << 24  # of memory that is copied for each


class Programs:
    """Runs the programs of one launch. order: their indices; run: runs one of them."""

    def __init__(self, launch: Launch, order: Sequence[int], run: Callable[[int], None]) -> None:
        self._launch, self._run, self._waiting = launch, run, deque(order)
        self._interrupted = False
        self._left = MOST

    def run(self) -> None:
        while self._waiting:
            self._run(self._waiting.popleft())

    def interrupt(self) -> None:
        """Perhaps run the program that comes next, where the one that runs has come to an atomic."""
        if self._interrupted or not self._waiting or not self._left or not unspecified.chance():
            return
        self._left -= 1
        storages = self._launch.storages
        if sum(storages.values()) > MOST_BYTES:
            return
        kept = {at: ctypes.string_at(at, length) for at, length in storages.items()}
        index = self._waiting.popleft()
        self._interrupted = True
        try:
            with self._launch.suspended():
                self._run(index)
        except Exception:
            if not self._launch.stalled:
                raise
            self._launch.forget(index)
            for at, data in kept.items():
                ctypes.memmove(at, data, len(data))
            self._waiting.appendleft(index)
            self._left = 0  # of programs that lock each other out, or wait
        finally:
            self._interrupted = self._launch.stalled = False
