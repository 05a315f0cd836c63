"""Operators as users name them, and kernel files as users are shown them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

TRACE_NAME = re.compile(r"\w[\w.+-]*")  # safe as the name of a file
_NEAR = 4  # names that an error lists


def full(word: str) -> str:
    """The full name that a user's word means: `silu` is aten::silu, `add.Tensor` aten::add.Tensor."""
    return word if "::" in word or not word else f"aten::{word}"


def counted(number: int, word: str) -> str:
    """Return `1 case`, `2 cases`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def means(word: str, overload: str) -> bool:
    """Whether a user's word names this overload: in full, or its operator for all overloads of it."""
    return overload == full(word) or overload.partition(".")[0] == full(word)


def near(word: str, overloads: Collection[str]) -> str:
    """The likest of the overloads, for an error about a word that names none; "" if none is like it."""
    bare = word.rpartition("::")[2]
    names = {o.rpartition("::")[2]: o for o in overloads}
    within = [name for name in sorted(names) if bare in name]
    return ", ".join(names[name] for name in (within or difflib.get_close_matches(bare, names, _NEAR))[:_NEAR])


@cache
def shown_path(path: Path) -> str:
    """A kernel file as tables show it: packaged files from `generate/` on, others as they are."""
    package = Path(__file__).parents[1]
    return str(path.relative_to(package)) if path.is_relative_to(package / "generate") else str(path)
