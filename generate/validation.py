"""Validation of what files and other processes say, by pydantic; imported with the first value that is validated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from traces import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def validated(kind: Callable[..., T], value: Any) -> T:
    """Return the dataclass that a value of JSON describes. Raises ValueError in one line for the first wrong field."""
    from pydantic import ValidationError

    names = [field.name for field in fields(cast(Any, kind))]
    unknown = [name for name in value if name not in names] if isinstance(value, dict) else []
    if unknown:
        raise ValueError(f"{unknown[0]}: there is no such field; there are: {', '.join(names)}")
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


def check_version(head: Any, path: Path, name: str, *versions: int, action: str = "") -> None:
    """Raise UserError if the first record of a file is of another format or version, TypeError if it is no object.

    action: what to do about it.
    """
    if not isinstance(head, dict):
        raise TypeError("the first record is no object")
    found = [head.get(key) for key in ("format", "version")]
    if found not in [[name, version] for version in versions]:
        known = f"this program reads {name} {', '.join(map(str, versions))}{action and '; '}{action}"
        raise UserError(f"{path}: format {found[0]!r} version {found[1]!r} is unknown; {known}")
