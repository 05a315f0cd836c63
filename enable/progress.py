"""Progress on stderr for what takes over a second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")
DELAY = 1.0  # seconds before a bar appears


def over(items: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """The items, with a bar once they have taken over a second."""
    return iter(tqdm(items, total=total, desc=what, delay=DELAY, leave=False))


def bar(total: int, what: str) -> tqdm[Any]:
    """A bar to update by hand."""
    return tqdm(total=total, desc=what, delay=DELAY, leave=False)
