"""Severity of violations: CHEAT if the code could pass a test without computing, else COMPILE_ERROR."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache

from verify.lint.names import LANGUAGES, Violation

_MODULES = {name: module for module, name in LANGUAGES.items()} | {name: name for name in ("torch", "triton", "math")}
_FORM = frozenset(  # rules on a file's form and on a dialect's limits: breaking them lets no code cheat
    {
        *("size", "encoding", "syntax", "depth", "answer-format", "blocks"),
        *("docstring", "overloads", "dtypes", "layouts", "redefinition", "wrapper", "wrapper-signature"),
        *("unknown-name", "annotation", "scatter-store", "half-maths", "alignment", "unroll"),
    }
)


def gravest(violations: Iterable[Violation]) -> tuple[Violation, bool]:
    """Return the first violation that could cheat, or else the first one, and True if it could cheat."""
    every = list(violations)
    cheating = next((v for v in every if could_cheat(v)), None)
    return (every[0], False) if cheating is None else (cheating, True)


def could_cheat(violation: Violation) -> bool:
    """Return True if the forbidden code could produce an answer that no kernel computed.

    A name that does not exist cannot.
    """
    if violation.rule in _FORM:
        return False
    return not violation.named or _exists(violation.named)


@cache
def _exists(name: str) -> bool:
    """Return True if the installed torch and Triton have the name.

    It is written `tl.NAME`, or `.NAME` for an attribute of a tensor or another value.
    """
    if name.startswith("."):
        import torch
        import triton.language

        holders = (torch.Tensor, triton.language.tensor, str, list, dict, int, float, type)
        return any(hasattr(holder, name[1:]) for holder in holders)
    head, *rest = name.split(".")
    if head not in _MODULES:
        return True  # unknown module: assume that it exists
    value = importlib.import_module(_MODULES[head])
    for part in rest:
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True
