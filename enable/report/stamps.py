"""Keep a value that was read from files until one of the files changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class FileCache(Generic[T]):
    """Values by key, each with the stamp of the files that it was read from."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[Hashable, T]] = {}

    def get(self, key: Hashable, stamp: Hashable, read: Callable[[], T]) -> T:
        """Return the kept value, or the result of `read` if there is none with this stamp.

        Args:
            key: Name of the value.
            stamp: Stamp of its files, taken before they are read, so that a later write is seen the next time.
            read: Returns the value.
        """
        kept = self._values.get(key)
        if kept is None or kept[0] != stamp:
            kept = self._values[key] = (stamp, read())
        return kept[1]


def stamp_of(files: Iterable[Path]) -> Hashable:
    """Return a value that changes when one of the files is written, replaced, added or removed."""
    return tuple((file, *_stamp(file)) for file in files)


def _stamp(file: Path) -> tuple[int, ...]:
    """Return the numbers that change with a file; () if there is no file."""
    try:
        info = file.stat()
    except FileNotFoundError:
        return ()
    return info.st_mtime_ns, info.st_size, info.st_ino
