"""Stop means stop: SIGINT and SIGTERM end a long command in order; a second one ends it at once."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stoppable(words: Sequence[str]) -> Iterator[None]:
    """What runs within gets KeyboardInterrupt for either signal, and ends its children on the way out.

    Then the process exits with 128 plus the signal's number. words: the command that goes on, told on stderr. For the
    main thread. A signal that was ignored before, as in a shell's background job, stays so.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = {each: signal.getsignal(each) for each in _STOPS if signal.getsignal(each) is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, stop)
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"enable: interrupted; to go on, run: {shlex.join(words)}\n")
        raise SystemExit(128 + (received or [signal.SIGINT])[0]) from None
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
