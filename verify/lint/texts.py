"""What a text that is formatted reads of the values it is given."""

from __future__ import annotations

import ast
from string import Formatter


def plain_fields(node: ast.expr) -> bool:
    """Whether `node.format(...)` reads nothing but its arguments: a literal, whose fields are numbers and names."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _plain(node.value)


def _plain(text: str) -> bool:
    try:
        fields = [(name, spec) for _, name, spec, _ in Formatter().parse(text) if name is not None]
    except ValueError:  # braces that do not match
        return False
    return all((not name or name.isalnum() or name.isidentifier()) and _plain(spec or "") for name, spec in fields)
