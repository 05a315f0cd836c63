"""Validation of what files and other processes say, by pydantic; imported with the first value that is validated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def validated(kind: Callable[..., T], value: Any) -> T:
    """Return the dataclass that a value of JSON describes. Raises ValueError in one line for the first wrong field."""
    from pydantic import ValidationError

    try:
        instance: T = _adapter(kind).validate_python(value)
        return instance
    except ValidationError as error:
        raise ValueError(first_error(error)) from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def first_error(error: ValidationError, choices: Iterable[str] = ()) -> str:
    """Return in one line what is wrong with the first wrong field. choices: the fields that there are."""
    found = error.errors()[0]
    field, message = ".".join(map(str, found["loc"])), str(found["msg"]).removeprefix("Value error, ")
    if found["type"] == "extra_forbidden":
        return f"{field}: there is no such setting; there are: {', '.join(choices)}"
    value = f" = {found['input']!r:.80}" if isinstance(found["input"], str | int | float) else ""
    return ": ".join(filter(None, [f"{field}{value}", "is missing" if found["type"] == "missing" else message]))
