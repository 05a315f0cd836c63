"""Judge a file whenever it is saved, with the same warm child processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from traces import UserError

POLL_SECONDS = 0.1


def watch(path: Path, judge: Callable[[], str], tell: Callable[[str], None], warm: Callable[[], None]) -> None:
    """Print `judge`'s text with its duration, now and after each change, until interrupted.

    An unreadable file, for example a half-written one, produces one line with the error.

    Args:
        path: The file to watch.
        judge: Judges the file and returns text.
        tell: Prints a text.
        warm: Called after each judgement to prepare the next one. Stored verdicts do not need it, so its
            UserError is ignored.
    """
    for _ in changes(path):
        started = time.monotonic()
        try:
            text = judge()
        except UserError as error:
            text = str(error)
        tell(f"{text}\n  {time.monotonic() - started:.1f} s; waiting for {path} to change, Ctrl-C ends")
        with suppress(UserError):
            warm()


def changes(path: Path) -> Iterator[None]:
    """Yield once at the start, then whenever the file is replaced or written; wait for a missing file."""
    last: tuple[int, int, int] | None = None
    while True:
        try:
            status = path.stat()
        except FileNotFoundError:
            identity = None
        else:
            identity = (status.st_ino, status.st_mtime_ns, status.st_size)
        if identity is not None and identity != last:
            last = identity
            yield
        time.sleep(POLL_SECONDS)
