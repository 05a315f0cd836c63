"""The dialect of kernel files as data: allow-lists of names, limits and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from traces import UserError

VERSION = 1
DEFAULT = "triton"
DIRECTORY = Path(__file__).parents[1] / "profiles"


@dataclass(frozen=True)
class Host:
    """What host code (the wrapper and its helpers) may use.

    functions: full dotted name -> kind of its result. attributes: name -> kinds of its result.
    """

    functions: dict[str, str]
    values: frozenset[str]
    types: frozenset[str]
    attributes: dict[str, frozenset[str]]
    builtins: frozenset[str]
    builtins_on_tensors: frozenset[str]
    exceptions: frozenset[str]


@dataclass(frozen=True)
class Kernel:
    """What a `@triton.jit` function may use.

    annotations: of parameters, dotted names and strings. constructs: names of nodes of Python's `ast`.
    """

    names: frozenset[str]
    attributes: frozenset[str]
    builtins: frozenset[str]
    annotations: frozenset[str]
    constructs: frozenset[str]


@dataclass(frozen=True)
class Profile:
    """One dialect, as read from verify/profiles/<name>.yaml."""

    name: str
    limits: dict[str, int]
    imports: dict[str, str]
    dtypes: tuple[str, ...]
    host: Host
    kernel: Kernel
    constructs: dict[str, str]
    hints: dict[str, str]

    def instead(self, name: str) -> str:
        """The hint for a name or, for a dotted one, for the longest prefix that has one; '' if there is none."""
        while name:
            if name in self.hints:
                return self.hints[name]
            name = name.rpartition(".")[0]
        return ""


@cache
def load_profile(name: str = DEFAULT) -> Profile:
    """Raises UserError, listing the choices, if there is no such dialect or its file is not one."""
    path = DIRECTORY / f"{name}.yaml"
    raw = _dialect(path) if path.is_file() else None
    if raw is None:
        choices = [p.stem for p in sorted(DIRECTORY.glob("*.yaml")) if _dialect(p)]
        raise UserError(f"unknown lint profile {name!r}; choose one of: {', '.join(choices)}")
    if raw.pop("version") != VERSION:
        raise UserError(f"{path}: lint profile of an unknown version; this program reads version {VERSION}")
    try:
        return _profile(raw)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not a lint profile ({error!r})") from error


def _dialect(path: Path) -> dict[str, Any] | None:
    """The file's contents; None if it is a profile of another kind (the directory holds the platforms' too)."""
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    return raw if isinstance(raw, dict) and {"version", "host", "kernel", "hints"} <= raw.keys() else None


def _profile(raw: dict[str, Any]) -> Profile:
    host = dict(raw.pop("host"))
    functions = {name: kind for kind, names in host.pop("functions").items() for name in names}
    attributes: dict[str, frozenset[str]] = {}
    for kind, names in host.pop("attributes").items():
        for name in names:
            attributes[name] = attributes.get(name, frozenset()) | {kind}
    sets = {key: frozenset(names) for key, names in host.items()}
    kernel = {key: frozenset(names) for key, names in raw.pop("kernel").items()}
    return Profile(
        host=Host(functions=functions, attributes=attributes, **sets),
        kernel=Kernel(**kernel),
        dtypes=tuple(raw.pop("dtypes")),
        **raw,
    )
