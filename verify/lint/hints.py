"""Check the hints that a chip's dialect states for names that it refuses."""

from __future__ import annotations

import builtins
import importlib.util
import re
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path

_LANGUAGE_NAME = re.compile(r"\btl(?:\.[A-Za-z_]\w*)+")  # a Triton name in a hint


def fitting(hints: Mapping[str, str], stated: Collection[str], names: frozenset[str]) -> dict[str, str]:
    """Return the hints without inherited ones that advise names of the language that a dialect lacks.

    Args:
        hints: All hints, by refused name.
        stated: Names of those that are not inherited.
        names: Names of Triton's language that kernels may use.
    """

    def fits(hint: str) -> bool:
        return names.issuperset(_LANGUAGE_NAME.findall(hint))

    return {name: hint for name, hint in hints.items() if name in stated or fits(hint)}


def problem(name: str, hint: object, inherited: Collection[str], imports: Mapping[str, str]) -> str:
    """Return the reason why a stated hint cannot be shown to anyone, or `""`.

    Args:
        name: Refused name: dotted as in a kernel file, or a method of a tensor or a builtin.
        hint: Advice.
        inherited: Names for which the base has a hint.
        imports: Modules by the names under which kernel files import them.
    """
    if not isinstance(hint, str) or not hint.strip():
        return f"the hint for {name} is {hint!r}; write what to use instead, as text"
    if name not in inherited and not _exists(name, imports):
        first = "', '".join(sorted(imports))
        return f"unknown name {name!r}; write it as kernel files do: one that begins with '{first}', or a method"
    return ""


def _exists(name: str, imports: Mapping[str, str]) -> bool:
    """Return True if there is such a name; Triton's source is searched, since an import fixes how kernels run."""
    root, *attributes = name.split(".")
    if not attributes:
        method = re.search(rf"def {re.escape(name)}\(", _language("core.py")) is not None
        return method or hasattr(builtins, name) or _resolves("torch", ["Tensor", name]) or _resolves("torch", [name])
    if imports.get(root) == "triton.language":
        return re.search(rf"\b{re.escape(attributes[0])}\b", _language("__init__.py")) is not None
    return root in imports and (imports[root].startswith("triton") or _resolves(imports[root], attributes))


def _language(file: str) -> str:
    """Return the source of one of the files of Triton's language."""
    spec = importlib.util.find_spec("triton")
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], "language", file).read_text(encoding="utf-8")


def _resolves(module: str, attributes: Sequence[str]) -> bool:
    try:
        reduce(getattr, attributes, importlib.import_module(module))
    except (ImportError, AttributeError):
        return False
    return True
