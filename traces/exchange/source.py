"""A call as another tool wrote it, before its operator is looked up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def _as_it_is(value: Any, type_: str) -> Any:
    return value


@dataclass(frozen=True)
class Call:
    """A call from another tool's file.

    Attributes:
        overload: Full overload name.
        count: Number of occurrences.
        seq: Position in the file.
        args: Positional arguments: plain values, dtypes and TensorSpec.
        kwargs: Named arguments, as for `args`.
        problem: Reason why the call cannot be read, or None.
        phase: Phase to record.
        coerce: Converts a value to the schema type with the given name.
    """

    overload: str
    count: int
    seq: int
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    phase: str = "imported"
    coerce: Callable[[Any, str], Any] = _as_it_is
