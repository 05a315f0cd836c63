"""Run program instances in the middle of another one, as on a GPU; the interpreter would run them in sequence.

A program instance is interrupted before and after an atomic by other complete ones, because kernels may wait, count
or lock there, and before a load if the launch has atomics. The values that it then sees and leaves differ from those of
a sequential run. If the interrupting program instance waits for the interrupted one, its effects are undone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from verify.child.accesses import Launch
from verify.child.unspecified import unspecified

MOST = 16  # interruptions per launch
MOST_AT_LOADS = 8  # of these, before loads
MOST_BYTES = 1 << 24  # bytes of memory copied for each interruption


class Programs:
    """Scheduler for a launch's program instances.

    Args:
        launch: Launch that they belong to.
        order: int64, their indices in running order.
        run: Function that runs one program instance.
    """

    def __init__(self, launch: Launch, order: np.ndarray, run: Callable[[int], None]) -> None:
        self._launch, self._run, self._order = launch, run, order
        self._begun = 0
        self._interrupted = False
        self._left, self._left_at_loads = MOST, MOST_AT_LOADS

    def run(self) -> None:
        while self._begun < self._order.size:
            self._run(self._next())

    def _next(self) -> int:
        self._begun += 1
        return int(self._order[self._begun - 1])

    def interrupt(self, at_load: bool = False) -> None:
        """Possibly run the next program instance, now that the current one has reached an atomic or a load."""
        left = min(self._left, self._left_at_loads) if at_load else self._left
        if self._interrupted or self._begun >= self._order.size or not left or not unspecified.chance():
            return
        self._left -= 1
        self._left_at_loads -= at_load
        storages = self._launch.storages
        if sum(storages.values()) > MOST_BYTES:
            return
        saved = {at: ctypes.string_at(at, length) for at, length in storages.items()}
        index = self._next()
        self._interrupted = True
        try:
            with self._launch.suspended():
                self._run(index)
        except Exception:
            if not self._launch.stalled:
                raise
            self._launch.forget(index)
            for at, data in saved.items():
                ctypes.memmove(at, data, len(data))
            self._begun -= 1
            self._left = 0  # stop interrupting: the program instances lock each other out, or wait
        finally:
            self._interrupted = self._launch.stalled = False
