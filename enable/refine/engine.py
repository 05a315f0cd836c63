"""Work on many operators at once. An engine yields how each ended, in the order in which they end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from enable.refine.holding import HeldDialogs, failed
from traces import UserError

Hold = Callable[[str], HeldDialogs]


class Engine(Protocol):
    """`run` may be left early; then nothing new is begun."""

    def run(self, overloads: Sequence[str]) -> Iterator[HeldDialogs]: ...


class Local:
    """Threads of this process, since a dialog mostly waits: for its model, or for the children that test.

    They are daemons: an interrupted program does not wait for a model to answer. What a dialog raises is raised here,
    but for a UserError, which is how that operator ended.
    """

    def __init__(self, hold: Hold, workers: int) -> None:
        self._hold, self._workers = hold, workers

    def run(self, overloads: Sequence[str]) -> Iterator[HeldDialogs]:
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        ended: queue.SimpleQueue[HeldDialogs | BaseException] = queue.SimpleQueue()
        for overload in overloads:
            waiting.put(overload)
        left = threading.Event()

        def work() -> None:
            while not left.is_set():
                try:
                    overload = waiting.get_nowait()
                except queue.Empty:
                    return
                ended.put(self._held(overload))

        for _ in range(min(self._workers, len(overloads))):
            threading.Thread(target=work, daemon=True).start()
        try:
            for _ in overloads:
                held = ended.get()
                if isinstance(held, BaseException):
                    raise held
                yield held
        finally:
            left.set()

    def _held(self, overload: str) -> HeldDialogs | BaseException:
        try:
            return self._hold(overload)
        except UserError as error:
            return failed(overload, error)
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            return error
