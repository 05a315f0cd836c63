"""Validate data from files and other processes with pydantic, which is imported on first use."""

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
    """Return the dataclass instance that a JSON value describes.

    Raises:
        ValueError: If a field is wrong; one line describes the first such field.
    """
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
    """Return one line on the first wrong field.

    Args:
        error: Pydantic's error.
        choices: Names of the known fields.
    """
    details = error.errors()[0]
    field, message = ".".join(map(str, details["loc"])), str(details["msg"]).removeprefix("Value error, ")
    if details["type"] == "extra_forbidden":
        return f"{field}: there is no such setting; there are: {', '.join(choices)}"
    value = f" = {details['input']!r:.80}" if isinstance(details["input"], str | int | float) else ""
    return ": ".join(filter(None, [f"{field}{value}", "is missing" if details["type"] == "missing" else message]))


def check_version(head: Any, path: Path, name: str, *versions: int, action: str = "") -> None:
    """Check the format and version in a file's first record.

    Args:
        head: The first record.
        path: The file, for the message.
        name: Expected format.
        *versions: Readable versions.
        action: Advice to append to the message.

    Raises:
        UserError: If the format or version is unknown.
        TypeError: If the record is not an object.
    """
    if not isinstance(head, dict):
        raise TypeError("the first record is no object")
    identity = [head.get(key) for key in ("format", "version")]
    if identity not in [[name, version] for version in versions]:
        known = f"this program reads {name} {', '.join(map(str, versions))}{action and '; '}{action}"
        raise UserError(f"{path}: format {identity[0]!r} version {identity[1]!r} is unknown; {known}")
