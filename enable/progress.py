"""Signs of life on stderr: what is being done, how far it is, for how long.

A terminal has one line, redrawn and taken away at the end. Elsewhere, as in a log of CI, there is a line of its own
every half minute, and nothing that is done sooner is told.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from enable.terminal import width

T = TypeVar("T")
DELAY = 1.0  # seconds before a terminal is told
PERIOD = 0.25  # seconds from one drawing to the next
LOGGED = 30.0  # seconds from one line to the next where there is no terminal


class Progress:
    """Something that is being done. total: how many there are to do; None where that cannot be said."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self.what, self.total = what, total
        self.done, self.note = 0, ""
        self._begun = self._counted = time.monotonic()

    def count(self, what: str, total: int, note: str = "") -> None:
        """What is prepared by now: so many to do from now on."""
        self.what, self.total, self.done, self.note = what, total, 0, note
        self._counted = time.monotonic()

    def step(self, note: str = "") -> None:
        """One more is done, in any thread. note: which."""
        self.done, self.note = self.done + 1, note

    def now(self, note: str) -> None:
        """What is being done of it, in any thread."""
        self.note = note

    def brief(self) -> str:
        """`coverage cnn  12 of 40  aten::mm`."""
        count = "" if self.total is None else f"{self.done} of {self.total}"
        return "  ".join(filter(None, [self.what, count, self.note]))

    def text(self) -> str:
        """The same with the time that it has taken, and what it may take yet."""
        now = time.monotonic()
        told = f"{self.brief()}  {_clock(now - self._begun)}"
        if not (self.total and self.done):
            return told
        return f"{told}, about {_clock((now - self._counted) / self.done * (self.total - self.done))} left"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class _Teller:
    """Tells of all that is being done, from a thread that is there as long as there is any."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._works: list[Progress] = []  # each within the one before it
        self._drawn = False

    def begin(self, work: Progress) -> None:
        with self._lock:
            self._works.append(work)
            if len(self._works) == 1:
                threading.Thread(target=self._tell, args=(work,), daemon=True).start()

    def end(self, work: Progress) -> None:
        """No more of this work, nor of what was begun within it."""
        with self._lock:
            if work in self._works:
                del self._works[self._works.index(work) :]
            self.clear()

    def clear(self) -> None:
        """Take the line away, for other text."""
        with self._lock:
            if self._drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._drawn = False

    def reset(self) -> None:
        """Nothing is being done any more, however it ended."""
        with self._lock:
            self._works.clear()
            self.clear()

    def _tell(self, first: Progress) -> None:
        begun = told = time.monotonic()
        while True:
            time.sleep(PERIOD)
            with self._lock:
                if not self._works or self._works[0] is not first:
                    return
                columns, now = width(sys.stderr), time.monotonic()
                text = "; ".join([first.text(), *(work.brief() for work in self._works[1:])])
                if columns is None and now - told >= LOGGED:
                    told = now
                    sys.stderr.write(f"{text}\n")
                elif columns is not None and now - begun >= DELAY:
                    sys.stderr.write(f"\r{text[: columns - 1]}\x1b[K")
                    self._drawn = True
                sys.stderr.flush()


_teller = _Teller()
reset = _teller.reset


@contextmanager
def doing(what: str, total: int | None = None) -> Iterator[Progress]:
    """Tell of what is done within. Threads other than the main one do their part of what that tells of."""
    work = Progress(what, total)
    if threading.current_thread() is not threading.main_thread():
        yield work
        return
    _teller.begin(work)
    try:
        yield work
    finally:
        _teller.end(work)


def over(items: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """The items, telling how many of them were taken."""
    with doing(what, total) as work:
        for item in items:
            yield item
            work.step()


def say(text: str) -> None:
    """A line on stderr that stays."""
    _teller.clear()
    sys.stderr.write(f"{text}\n")
