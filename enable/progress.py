"""Show progress on stderr: the current work, its position and its duration.

A terminal has one line, which is redrawn and finally removed. Elsewhere, such as in a CI log, a line is printed every
30 s, and shorter work prints nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from enable.terminal import LAYOUT, printable, width

T = TypeVar("T")
DELAY = 1.0  # seconds before the first line on a terminal
PERIOD = 0.25  # seconds between redraws
LOGGED = 30.0  # seconds between lines without a terminal


class Progress:
    """A piece of work that is in progress; `total` is the number of its items, or None if it is unknown."""

    def __init__(self, title: str, total: int | None = None) -> None:
        self.title, self.total = title, total
        self.done, self.note = 0, ""
        self._begun = self._counted = time.monotonic()

    def count(self, title: str, total: int, note: str = "") -> None:
        """Start counting `total` items, after a preparation."""
        self.title, self.total, self.done, self.note = title, total, 0, note
        self._counted = time.monotonic()

    def step(self, note: str = "") -> None:
        """Count one item, from any thread; `note` names it."""
        self.done, self.note = self.done + 1, note

    def now(self, note: str) -> None:
        """Set the note about the current item, from any thread."""
        self.note = note

    def brief(self) -> str:
        """Return a text such as `coverage cnn  12 of 40  aten::mm`."""
        count = "" if self.total is None else f"{self.done} of {self.total}"
        return "  ".join(filter(None, [self.title, count, self.note]))

    def text(self) -> str:
        """Return the brief text with the elapsed time and the estimated remaining time."""
        now = time.monotonic()
        line = f"{self.brief()}  {_clock(now - self._begun)}"
        if not (self.total and self.done):
            return line
        return f"{line}, about {_clock((now - self._counted) / self.done * (self.total - self.done))} left"


def _clock(seconds: float) -> str:
    """Format seconds as M:SS or H:MM:SS."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class _Display:
    """Draws the work in progress, from a thread that ends with the outermost work."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._nested_work: list[Progress] = []  # nested: each one began inside the one before it
        self._drawn = False

    def begin(self, work: Progress) -> None:
        """Add work, and start the thread for the first one."""
        with self._lock:
            self._nested_work.append(work)
            if len(self._nested_work) == 1:
                threading.Thread(target=self._redraw, args=(work,), daemon=True).start()

    def end(self, work: Progress) -> None:
        """Remove this work and all work that began inside it."""
        with self._lock:
            if work in self._nested_work:
                del self._nested_work[self._nested_work.index(work) :]
            self.clear()

    def clear(self) -> None:
        """Remove the line, so that other text can be printed."""
        with self._lock:
            if self._drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
                self._drawn = False

    def reset(self) -> None:
        """Remove all work, however it ended."""
        with self._lock:
            self._nested_work.clear()
            self.clear()

    def _redraw(self, first: Progress) -> None:
        """Print the line periodically until the first work ends."""
        started = last_printed = time.monotonic()
        while True:
            time.sleep(PERIOD)
            with self._lock:
                if not self._nested_work or self._nested_work[0] is not first:
                    return
                columns, now = width(sys.stderr), time.monotonic()
                text = printable("; ".join([first.text(), *(work.brief() for work in self._nested_work[1:])]))
                if columns is None and now - last_printed >= LOGGED:
                    last_printed = now
                    sys.stderr.write(f"{text}\n")
                elif columns is not None and now - started >= DELAY:
                    sys.stderr.write(f"\r{text[: columns - 1]}\x1b[K")
                    self._drawn = True
                sys.stderr.flush()


_display = _Display()
reset = _display.reset


@contextmanager
def show_progress(title: str, total: int | None = None) -> Iterator[Progress]:
    """Show the progress of the work inside the block.

    Only the main thread shows progress; other threads take part in the work that it shows.
    """
    work = Progress(title, total)
    if threading.current_thread() is not threading.main_thread():
        yield work
        return
    _display.begin(work)
    try:
        yield work
    finally:
        _display.end(work)


def track(items: Iterable[T], total: int | None, title: str) -> Iterator[T]:
    """Yield the items and show how many of them are done."""
    with show_progress(title, total) as work:
        for item in items:
            yield item
            work.step()


def say(text: str) -> None:
    """Print a permanent line on stderr."""
    _display.clear()
    sys.stderr.write(f"{printable(text, LAYOUT)}\n")
