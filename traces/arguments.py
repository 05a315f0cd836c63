"""Check the arguments of public functions against the functions' annotations.

A checked function raises UserError for a value that its annotation does not allow. The message names the function, the
parameter, the value and the allowed values.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from traces.errors import UserError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

P = ParamSpec("P")
R = TypeVar("R")
_MAX_SHOWN = 80  # characters of a value in a message
_WORDS = {bool: "True or False", int: "a whole number", str: "a text", PathLike: "a path", dict: "a dict"}
_LISTS = (Iterable, Sequence)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a check of its arguments: a value of a wrong type raises UserError."""
    signature = inspect.signature(function)

    @wraps(function)
    def check_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
        check_values(function, signature.bind(*args, **kwargs).arguments)
        return function(*args, **kwargs)

    return check_and_call


def check_values(annotated: Callable[..., Any], values: Mapping[str, Any], label: str = "") -> None:
    """Raise UserError for the first value that its annotation does not allow.

    Args:
        annotated: A function, or a class with annotated fields.
        values: Values by parameter or field; names without an annotation are ignored.
        label: Beginning of the message, by default the name of the function.
    """
    checks = _checks(annotated)
    for name, value in values.items():
        if name not in checks or checks[name].allows(value):
            continue
        shown = repr(value)
        shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}..."
        label = label or annotated.__qualname__.removesuffix(".__init__")
        raise UserError(f"{label}: {name} {shown} is not {checks[name].remedy(value)}")


@dataclass(frozen=True)
class _Check:
    """The annotation of one parameter with its validator."""

    hint: Any
    adapter: TypeAdapter[Any]

    @cached_property
    def lists_names(self) -> bool:
        """Return True if the parameter is a list of texts, so that a single text is a mistake."""
        return any(get_origin(member) in _LISTS for member in _members(self.hint))

    def allows(self, value: Any) -> bool:
        """Return True if the value has the annotated type; nothing is converted."""
        from pydantic import ValidationError

        try:
            self.adapter.validate_python(value, strict=True)
        except ValidationError:
            return False
        if not self.lists_names or value is None:
            return True
        # pydantic takes any iterable for Iterable[str], and does not look at its items
        return not isinstance(value, str) and (
            not isinstance(value, Collection) or all(isinstance(item, str) for item in value)
        )

    def remedy(self, value: Any) -> str:
        """Return the allowed values, and the list to write in place of a single text."""
        words = [word for member in _members(self.hint) for word in _words(member)]
        allowed = " or ".join(dict.fromkeys(words))
        return f"{allowed}; write [{value!r}]" if self.lists_names and isinstance(value, str) else allowed


@cache
def _checks(annotated: Callable[..., Any]) -> dict[str, _Check]:
    """Return the check for each annotated parameter or field."""
    from pydantic import ConfigDict, TypeAdapter  # the import takes 0.1 s, so it waits until a function is called

    hints = get_type_hints(annotated, include_extras=True)
    config = ConfigDict(arbitrary_types_allowed=True)
    return {name: _Check(hint, TypeAdapter(hint, config=config)) for name, hint in hints.items() if name != "return"}


def _members(hint: Any) -> Iterator[Any]:
    """Yield the members of a union, or the annotation itself."""
    if get_origin(hint) in (Union, types.UnionType):
        for member in get_args(hint):
            yield from _members(member)
    else:
        yield hint


def _words(hint: Any) -> list[str]:
    """Return the words for the values that one annotation allows."""
    origin = get_origin(hint) or hint
    if origin is Annotated:
        bounds = [f", {bound.ge} or more" for field in get_args(hint)[1:] for bound in field.metadata]
        return [f"{word}{''.join(bounds)}" for word in _words(get_args(hint)[0])]
    if origin is Literal:
        return [repr(choice) for choice in get_args(hint)]
    if origin is type(None):
        return ["None"]
    if origin in _LISTS:
        return ["a list of texts"]
    return [_WORDS.get(origin) or f"an instance of {origin.__name__}"]
