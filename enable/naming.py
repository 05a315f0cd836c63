"""Convert between users' operator names and full overload names, and shorten kernel paths for output."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path

TRACE_NAME = re.compile(r"\w[\w.+-]*")  # safe as a file name
_NEAR = 4  # maximum number of names in an error message


def full(word: str) -> str:
    """Return the full name for a user's word: `silu` is aten::silu, `add.Tensor` is aten::add.Tensor."""
    return word if "::" in word or not word else f"aten::{word}"


def counted(number: int, word: str) -> str:
    """Return `1 case`, `2 cases`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def means(word: str, overload: str) -> bool:
    """Return True if a user's word names this overload, either in full or by its operator."""
    return overload == full(word) or overload.partition(".")[0] == full(word)


def near(word: str, overloads: Collection[str]) -> str:
    """Return the overloads most similar to a word that names none, for an error message; "" if none is similar."""
    bare = word.rpartition("::")[2]
    names = {o.rpartition("::")[2]: o for o in overloads}
    within = [name for name in sorted(names) if bare in name]
    return ", ".join(names[name] for name in (within or difflib.get_close_matches(bare, names, _NEAR))[:_NEAR])


@cache
def shown_path(path: Path) -> str:
    """Return a kernel file's path for tables: packaged files from `generate/` on, others unchanged."""
    package = Path(__file__).parents[1]
    return str(path.relative_to(package)) if path.is_relative_to(package / "generate") else str(path)


def kernel_path(shown: str) -> Path:
    """Return the path of a kernel file from its text in a table; see `shown_path`."""
    packaged = Path(__file__).parents[1] / shown
    return packaged if shown.startswith("generate/") and packaged.is_file() else Path(shown).absolute()
