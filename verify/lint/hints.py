"""Check the hints that a chip's dialect states for names that it refuses."""

from __future__ import annotations

import builtins
import importlib
import re
from collections.abc import Collection, Mapping
from functools import reduce

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
    import torch
    import triton.language as tl

    root, *attributes = name.split(".")
    if not attributes:
        return any(hasattr(owner, name) for owner in (torch.Tensor, tl.tensor, torch, builtins))
    if root not in imports:
        return False
    try:
        reduce(getattr, attributes, importlib.import_module(imports[root]))
    except (ImportError, AttributeError):
        return False
    return True
