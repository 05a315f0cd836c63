"""Judge a file whenever it is saved, with the same warm children."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from traces import UserError

POLL_SECONDS = 0.1


def watch(path: Path, judge: Callable[[], str], tell: Callable[[str], None], warm: Callable[[], None]) -> None:
    """Until interrupted: what `judge` says of the file, now and after each change, with the seconds that it took.

    warm: called after each, to have ready what the next needs; kept verdicts answer without it. Its UserError is left
    to what needs it.

    A file that cannot be judged as it stands, half written say, is told in a line.
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
    """Once at the beginning, then whenever the file is another or was written. One that is gone is waited for."""
    last: tuple[int, int, int] | None = None
    while True:
        try:
            found = path.stat()
        except FileNotFoundError:
            now = None
        else:
            now = (found.st_ino, found.st_mtime_ns, found.st_size)
        if now is not None and now != last:
            last = now
            yield
        time.sleep(POLL_SECONDS)
