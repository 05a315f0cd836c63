"""Handle SIGINT and SIGTERM: the first signal ends a long command in order, a second one ends it at once."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from traces.program import program_label

_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def sigterm_as_interrupt() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt in the block for SIGTERM, and yield a list that receives the signal's number.

    A forked child ends as usual, and so does this process for a second signal. Use it only in the main thread. An
    earlier handler stays.
    """
    received: list[int] = []
    owner = os.getpid()

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != owner:
            os.kill(os.getpid(), number)
        received.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield received
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def stoppable(words: Sequence[str], message: str = "interrupted; to go on") -> Iterator[None]:
    """Raise KeyboardInterrupt in the block for either signal, so that it ends its children on the way out.

    The process then exits with 128 plus the signal's number and prints `message` and `words`, the next command. Use it
    only in the main thread. A signal that was ignored before, as in a shell's background job, stays ignored.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for each in previous_handlers:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    previous_handlers = {
        each: signal.getsignal(each) for each in _STOPS if signal.getsignal(each) is not signal.SIG_IGN
    }
    for each in previous_handlers:
        signal.signal(each, stop)
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"{program_label()}: {message}, run: {shlex.join(words)}\n")
        raise SystemExit(128 + (received or [signal.SIGINT])[0]) from None
    finally:
        for each, handler in previous_handlers.items():
            signal.signal(each, handler)
