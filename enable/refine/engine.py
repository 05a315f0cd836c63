"""Run the dialogs for many operators at once. An engine yields results as they complete.

`Local` uses threads; `enable.campaigns.engine_ray.Ray` implements the same protocol on a cluster.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from enable.refine.holding import HeldDialogs, failed
from traces import UserError

Hold = Callable[[str], HeldDialogs]


class Engine(Protocol):
    """Runs the dialogs for many operators.

    If the caller leaves the iterator from `run` early, the engine starts no further operator.
    """

    def run(self, overloads: Sequence[str]) -> Iterator[HeldDialogs]: ...


class Local:
    """An engine with threads in this process.

    Threads suffice because a dialog mostly waits for its model, or for the child processes that run tests. The
    threads are daemons, so an interrupted program does not wait for a model. A UserError becomes the operator's
    result. All other exceptions are raised in the caller's thread.
    """

    def __init__(self, hold: Hold, workers: int) -> None:
        self._hold, self._workers = hold, workers

    def run(self, overloads: Sequence[str]) -> Iterator[HeldDialogs]:
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        ended: queue.SimpleQueue[HeldDialogs | BaseException] = queue.SimpleQueue()
        for overload in overloads:
            waiting.put(overload)
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                try:
                    overload = waiting.get_nowait()
                except queue.Empty:
                    return
                ended.put(self._attempt(overload))

        for _ in range(min(self._workers, len(overloads))):
            threading.Thread(target=work, daemon=True).start()
        try:
            for _ in overloads:
                result = ended.get()
                if isinstance(result, BaseException):
                    raise result
                yield result
        finally:
            stop.set()

    def _attempt(self, overload: str) -> HeldDialogs | BaseException:
        """Return the result for one operator, or the exception that the caller has to raise."""
        try:
            return self._hold(overload)
        except UserError as error:
            return failed(overload, error)
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            return error
