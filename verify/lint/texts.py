"""Check that a text reads nothing beyond its arguments, and holds no address of an object."""

from __future__ import annotations

import ast
from string import Formatter

_PROPERTIES = frozenset({"index", "values"})  # attributes of devices and of results with named parts, too
# Methods that a wrapper may call; without a call each is an object whose text holds an address.
METHODS = frozenset(
    {
        *(
            name
            for kind in (list, dict, set, str, tuple)
            for name in dir(kind)
            if not name.startswith("_") and name not in _PROPERTIES
        ),
        *("stride", "size", "dim", "numel", "nelement", "element_size", "data_ptr", "storage_offset", "item"),
        *("contiguous", "clone", "detach", "to", "view", "reshape", "expand", "permute", "transpose", "squeeze"),
        *("unsqueeze", "flatten", "unflatten", "narrow", "select", "as_strided", "is_contiguous"),
        *("new_empty", "new_zeros", "new_ones", "new_full", "untyped_storage", "fill_", "zero_"),
    }
)


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
