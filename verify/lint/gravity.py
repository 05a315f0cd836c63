"""What a violation comes to: CHEAT for what could pass a test without computing, else COMPILE_ERROR."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache

from verify.lint.names import LANGUAGES, Violation

_MODULES = {name: module for module, name in LANGUAGES.items()} | {name: name for name in ("torch", "triton", "math")}
_FORM = frozenset(  # rules on how a file is written: what breaks them would not run, or would not be found
    {
        *("size", "encoding", "syntax", "depth", "answer-format", "blocks"),
        *("docstring", "overloads", "dtypes", "layouts", "redefinition", "wrapper", "wrapper-signature"),
        *("unknown-name", "annotation", "scatter-store", "half-maths", "alignment", "unroll"),
    }
)


def gravest(violations: Iterable[Violation]) -> tuple[Violation, bool]:
    """The first violation that could cheat, else the first of all; and whether it could."""
    every = list(violations)
    cheating = next((v for v in every if could_cheat(v)), None)
    return (every[0], False) if cheating is None else (cheating, True)


def could_cheat(violation: Violation) -> bool:
    """Whether what is forbidden here may give an answer that no kernel has computed. What does not exist gives none."""
    if violation.rule in _FORM:
        return False
    return not violation.named or _exists(violation.named)


@cache
def _exists(name: str) -> bool:
    """Whether this torch and Triton have what is written `tl.NAME` or, of a tensor or any value, `.NAME`."""
    if name.startswith("."):
        import torch
        import triton.language

        holders = (torch.Tensor, triton.language.tensor, str, list, dict, int, float, type)
        return any(hasattr(holder, name[1:]) for holder in holders)
    head, *rest = name.split(".")
    if head not in _MODULES:
        return True  # whatever it is
    found = importlib.import_module(_MODULES[head])
    for part in rest:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True
