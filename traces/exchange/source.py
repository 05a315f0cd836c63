"""One call as another tool wrote it, before it is known whether the operator exists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def _as_it_is(value: Any, type_: str) -> Any:
    return value


@dataclass(frozen=True)
class Call:
    """count: how often it occurred. seq: its place in the file. problem: why it cannot be read, or None.

    args, kwargs: plain values, dtypes and TensorSpec. coerce: makes a value one of the schema's type of that name.
    """

    overload: str
    count: int
    seq: int
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    phase: str = "imported"
    coerce: Callable[[Any, str], Any] = _as_it_is
