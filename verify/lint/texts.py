"""Check that formatting a text reads nothing beyond its arguments."""

from __future__ import annotations

import ast
from string import Formatter


def plain_fields(node: ast.expr) -> bool:
    """Return True if `node.format(...)` reads only its arguments.

    That holds for a literal whose fields are numbers and names, because other fields could access attributes.
    """
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _plain(node.value)


def _plain(text: str) -> bool:
    try:
        fields = [(name, spec) for _, name, spec, _ in Formatter().parse(text) if name is not None]
    except ValueError:  # mismatched braces
        return False
    return all((not name or name.isalnum() or name.isidentifier()) and _plain(spec or "") for name, spec in fields)
