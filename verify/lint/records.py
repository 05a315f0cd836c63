"""Read a bare file's records, which are dataclasses or NamedTuples of plain settings, as tuples.

The other rules know tuples: `Tile(block=64, warps=4)` becomes `(64, 4)`, `tile.block` becomes `tile[0]`, and the class
is left out. Classes that are not as plain, or whose instances change, stay, so the other rules refuse them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

from verify.lint.names import canonical, dotted_name
from verify.lint.profile import Profile
from verify.syntax import walk

_TYPES = frozenset({"int", "float", "bool", "str", "tuple"})
_OPTIONS = frozenset({"frozen", "slots", "eq"})
_MODULES = frozenset({"dataclasses", "typing"})


@dataclass(frozen=True)
class _Record:
    """A class's fields in order, with the expressions of their defaults."""

    fields: tuple[str, ...]
    defaults: Mapping[str, ast.expr]


def without_records(tree: ast.Module, profile: Profile) -> ast.Module:
    """Return a bare file's tree in which records are tuples; return other trees unchanged."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    if not (profile.bare and classes):
        return tree
    modules = _imported(tree)
    changed = {n.attr for n in walk(tree) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}
    refused = changed | profile.host.attributes.keys()  # the latter are attributes of other values, too
    records = {c.name: r for c in classes if (r := _record(c, modules)) and refused.isdisjoint(r.fields)}
    if not records:
        return tree
    body = [n for n in tree.body if not (isinstance(n, ast.ClassDef) and n.name in records) and not _is_import(n)]
    plain: ast.Module = _Tuples(records).visit(deepcopy(ast.Module(body, tree.type_ignores)))
    return plain


def _imported(tree: ast.Module) -> dict[str, str]:
    modules = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in _MODULES:
            modules.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
        elif isinstance(node, ast.Import):
            modules.update({a.asname or a.name: canonical(a.name) for a in node.names if a.name in _MODULES})
    return modules


def _is_import(node: ast.stmt) -> bool:
    """Return True for an import of no more than the decorator."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "dataclasses" and {a.name for a in node.names} == {"dataclass"}
    return isinstance(node, ast.Import) and {a.name for a in node.names} == {"dataclasses"}


def _record(node: ast.ClassDef, modules: Mapping[str, str]) -> _Record | None:
    """Return the fields of a class that is a plain record, else None."""
    decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    kinds = [dotted_name(n, dict(modules)) for n in (*decorators, *node.bases)]
    options = {k.arg for d in node.decorator_list if isinstance(d, ast.Call) for k in d.keywords}
    if kinds not in (["dataclasses.dataclass"], ["typing.NamedTuple"]) or node.keywords or not options <= _OPTIONS:
        return None
    body = node.body[1:] if _is_text(node.body[0]) else node.body
    fields: dict[str, ast.expr | None] = {}
    for statement in body:
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            return None
        plain = isinstance(statement.annotation, ast.Name) and statement.annotation.id in _TYPES
        special = statement.target.id.startswith("_")
        if special or not plain or not isinstance(statement.value, ast.Constant | None):
            return None
        fields[statement.target.id] = statement.value
    return _Record(tuple(fields), {name: value for name, value in fields.items() if value is not None})


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Tuples(ast.NodeTransformer):
    def __init__(self, records: Mapping[str, _Record]) -> None:
        self._records = records
        self._places = {name: i for record in records.values() for i, name in enumerate(record.fields)}

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        record = self._records.get(node.func.id) if isinstance(node.func, ast.Name) else None
        stated = dict(zip(record.fields, node.args, strict=False)) if record else {}
        named = {k.arg: k.value for k in node.keywords if k.arg is not None}
        if record is None or stated.keys() & named.keys() or len(node.args) > len(record.fields):
            return node
        values = {**record.defaults, **stated, **named}
        if values.keys() != {*record.fields} or any(isinstance(a, ast.Starred) for a in node.args):
            return node
        return ast.copy_location(ast.Tuple([values[name] for name in record.fields], ast.Load()), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr not in self._places:
            return node
        return ast.copy_location(
            ast.Subscript(node.value, ast.copy_location(ast.Constant(self._places[node.attr]), node), node.ctx), node
        )

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if isinstance(node.annotation, ast.Name) and node.annotation.id in self._records:
            node.annotation = ast.copy_location(ast.Name("tuple", ast.Load()), node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        if isinstance(node.returns, ast.Name) and node.returns.id in self._records:
            node.returns = ast.copy_location(ast.Name("tuple", ast.Load()), node.returns)
        return node
