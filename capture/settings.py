"""Settings given as text, parsed by the types that a signature, a config or a default implies."""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from traces.errors import UserError, choose_from

_SCALARS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
_EXPECTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a JSON list",
    dict: "a JSON object",
}
_BOOLS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_MANY = 40  # number of choices beyond which an error lists only the nearest ones
_NONE = ("none", "null")


@dataclass(frozen=True)
class Setting:
    """The type and default of one setting.

    Attributes:
        kind: bool, int, float, str, list or dict; None for any JSON value or text.
        default: The default value.
        optional: True if None is a valid value.
    """

    kind: type | None
    default: Any = None
    optional: bool = False


def of_default(default: Any, annotation: object = None, required: bool = False) -> Setting:
    """Return the setting that a default and an annotation imply.

    Args:
        default: The default value.
        annotation: A type or its text, or None.
        required: True if there is no default, so a `default` of None does not make the setting optional.
    """
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None) or str(annotation)
    if str(annotation).startswith("typing."):
        text = str(annotation)
    words = set(re.findall(r"\w+", text)) - {"typing", "Union", "Optional"}
    kinds = words - {"None"}
    optional = (default is None and not required) or "None" in words or "Optional" in text
    if isinstance(annotation, UnionType):  # a union that includes a list, tuple or dict accepts any JSON value
        members = {get_origin(a) or a for a in get_args(annotation)} - {NoneType}
        if len(members) > 1 and members & {list, tuple, dict}:
            return Setting(None, default, optional)
    if kinds == {"int", "float"}:
        return Setting(float, default, optional)
    if len(kinds) == 1 and kinds <= _SCALARS.keys():
        return Setting(_SCALARS[kinds.pop()], default, optional)
    kind = list if isinstance(default, tuple) else type(default)
    return Setting(kind if kind in (*_SCALARS.values(), list, dict) else None, default, optional)


def of_signature(function: Callable[..., Any]) -> tuple[dict[str, Setting], bool]:
    """Return a function's keyword settings, and True if it accepts others too, without evaluating annotations."""
    settings, takes_others = {}, False
    for p in inspect.signature(function).parameters.values():
        takes_others = takes_others or p.kind is p.VAR_KEYWORD
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            required, annotation = p.default is p.empty, None if p.annotation is p.empty else p.annotation
            settings[p.name] = of_default(None if required else p.default, annotation, required)
    return settings, takes_others


def parse(
    owner: str, known: Mapping[str, Setting], texts: Mapping[str, str], accepts_unknown: bool = False
) -> dict[str, Any]:
    """Parse settings given as text.

    Args:
        owner: Name of the target, for messages.
        known: Settings by name.
        texts: Text by name.
        accepts_unknown: Accept names beyond the known ones.

    Raises:
        UserError: If a name is unknown or a value does not fit.
    """
    values = {}
    for name, text in texts.items():
        if name not in known and not accepts_unknown:
            raise UserError(f"{owner} has no setting {name!r}{_choices(name, known)}")
        values[name] = _value(owner, name, text, known.get(name, Setting(None)))
    return values


def nearest(name: str, choices: Iterable[str]) -> list[str]:
    """Return at most five choices that start with a name or are spelled similarly, best first."""
    choices = list(choices)
    longer = [choice for choice in choices if choice.startswith(name)]
    return list(dict.fromkeys([*longer, *difflib.get_close_matches(name, choices, 5)]))[:5]


def _choices(name: str, known: Mapping[str, Setting]) -> str:
    near = nearest(name, known)
    if not known:
        return "; it takes none"
    if len(known) > _MANY and near:
        return f"; nearest are {', '.join(near)}"
    return choose_from(name, known)


def _value(owner: str, name: str, text: str, setting: Setting) -> Any:
    if setting.optional and text.lower() in _NONE:
        return None
    try:
        return _read(text, setting.kind)
    except (KeyError, ValueError) as error:
        expected = _EXPECTED[setting.kind] if setting.kind else "a value"
        like = f"; write it like --set {name}={setting.default}" if setting.default is not None else ""
        raise UserError(f"{owner}: {name}={text} is not {expected}{like}") from error


def _read(text: str, kind: type | None) -> Any:
    if kind is bool:
        return _BOOLS[text.lower()]
    if kind in (int, float):
        number = kind(text)
        if not -(2**63) <= number < 2**63:  # also rejects NaN and infinities
            raise ValueError(text)
        return number
    if kind in (list, dict):
        value = json.loads(text)
        if not isinstance(value, kind):
            raise ValueError(text)
        return value
    return text if kind is str else _json_or_text(text)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text
