"""Find the keywords that `**value` passes to a launch, if the source shows them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import chain
from typing import TypeAlias

from verify.lint.names import Names
from verify.syntax import walk

Pairs: TypeAlias = list[tuple[str, ast.expr]]
Work: TypeAlias = Callable[[int], None]  # see Findings.work
_READING = frozenset({"get", "items", "keys", "values", "copy"})


def spread(node: ast.expr, names: Names, work: Work, seen: frozenset[str] = frozenset()) -> Pairs | None:
    """Return the keywords and values in `node`, or None if they cannot be determined.

    Supported are dict displays, names that are only assigned such displays, and helpers that return them.
    """
    work(1)
    if isinstance(node, ast.Dict):
        work(len(node.keys))
        return _display(node, names, work, seen)
    if isinstance(node, ast.IfExp):
        return _all([node.body, node.orelse], names, work, seen)
    if isinstance(node, ast.Subscript):
        whole = spread(node.value, names, work, seen)  # a table that contains displays
        return None if whole is None else _all([value for _, value in whole], names, work, seen)
    name = getattr(node.func if isinstance(node, ast.Call) else node, "id", "")
    if isinstance(node, ast.Call) and name == "dict" and not node.args:
        parts = [[(k.arg, k.value)] if k.arg else spread(k.value, names, work, seen) for k in node.keywords]
        return _joined(parts)
    if name in seen:
        return None
    if isinstance(node, ast.Call) and name in names.helpers:
        returns = [n.value for n in walk(names.helpers[name]) if isinstance(n, ast.Return)]
        return _all(returns, names, work, seen | {name})
    if isinstance(node, ast.Name) and name in names.assigned:
        whole = _all(list(names.assigned[name]), names, work, seen | {name})
        return _joined([whole, _stored(name, names, work)])
    return None


def _display(node: ast.Dict, names: Names, work: Work, seen: frozenset[str]) -> Pairs | None:
    parts: list[Pairs | None] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            parts.append(spread(value, names, work, seen))
        else:
            parts.append([(str(key.value), value)] if isinstance(key, ast.Constant) else None)
    return _joined(parts)


def _stored(name: str, names: Names, work: Work) -> Pairs | None:
    """Return the items that `name["KEY"] = ...` adds, or None if other uses of the name could add items."""
    stored: Pairs = []
    for node in chain.from_iterable(map(walk, names.helpers.values())):
        work(1)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == name and node.attr not in _READING:
            return None
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") == name:
                if not isinstance(target.slice, ast.Constant):
                    return None
                stored.append((str(target.slice.value), node.value))  # type: ignore[attr-defined]
    return stored


def _all(nodes: list[ast.expr | None] | list[ast.expr], names: Names, work: Work, seen: frozenset[str]) -> Pairs | None:
    return _joined([spread(node, names, work, seen) if node is not None else None for node in nodes]) if nodes else None


def _joined(parts: list[Pairs | None]) -> Pairs | None:
    return None if any(p is None for p in parts) else [pair for p in parts for pair in p or []]
