"""Python source as a tree, in any number of threads."""

from __future__ import annotations

import ast
import threading
import warnings

_LOCK = threading.Lock()


def parse(source: str) -> ast.Module:
    """`ast.parse` in one thread at a time, without its warnings, such as of `1if x else y`.

    CPython counts the depth of all trees in the making together, and raises SystemError where garbage collection lets
    another thread go on with one (seen with 3.11).
    """
    with _LOCK, warnings.catch_warnings(action="ignore"):
        return ast.parse(source)


def parse_expression(source: str) -> ast.expr:
    """The same for one expression."""
    with _LOCK, warnings.catch_warnings(action="ignore"):
        return ast.parse(source, mode="eval").body
