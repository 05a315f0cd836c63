"""Module-level values of a bare file: constants with annotations, and tables that nothing ever changes."""

from __future__ import annotations

import ast
from collections.abc import Callable

from verify.lint.names import Names
from verify.lint.profile import Profile

_READING_METHODS = frozenset({"get", "items", "keys", "values", "index", "count", "copy"})
_READING_BUILTINS = frozenset(
    {"len", "sorted", "tuple", "list", "dict", "set", "min", "max", "enumerate", "zip", "any"}
)


class ModuleValues:
    """Tells which module-level assignments are plain values that stay what they are."""

    def __init__(
        self, tree: ast.Module, names: Names, profile: Profile, is_literal: Callable[[ast.expr], bool]
    ) -> None:
        self.tree, self.names, self.profile, self.is_literal = tree, names, profile, is_literal

    def allow(self, node: ast.stmt) -> bool:
        """Whether a statement defines a constant, or a table that is only ever read."""
        if isinstance(node, ast.AnnAssign):
            simple = isinstance(node.target, ast.Name) and node.value is not None
            return simple and self._plain_annotation(node.annotation) and self._value(node.value)  # type: ignore[arg-type]
        if not isinstance(node, ast.Assign) or not all(isinstance(t, ast.Name) for t in node.targets):
            return False
        if not isinstance(node.value, ast.Dict | ast.List | ast.Set | ast.ListComp):
            return self._value(node.value)
        return self._value(node.value) and all(self._only_read(t.id) for t in node.targets)  # type: ignore[attr-defined]

    def _plain_annotation(self, node: ast.expr) -> bool:
        dotted = self.names.dotted(node) or ""
        if dotted == "tl.constexpr" or dotted.startswith("typing."):
            return True
        return isinstance(node, ast.Name) and node.id in ("int", "float", "bool", "str", "dict", "list", "tuple")

    def _value(self, node: ast.expr) -> bool:
        if self.is_literal(node):
            return True
        if isinstance(node, ast.Dict):
            return all(k is not None and self._value(k) for k in node.keys) and all(map(self._value, node.values))
        if isinstance(node, ast.List | ast.Set | ast.Tuple):
            return all(map(self._value, node.elts))
        if isinstance(node, ast.ListComp):
            return self._configs(node)
        if isinstance(node, ast.Call) and self.names.dotted(node.func) == "tl.constexpr":
            return len(node.args) == 1 and not node.keywords and self.is_literal(node.args[0])
        if isinstance(node, ast.Call):
            return self._config(node, set())
        is_kernel = isinstance(node, ast.Name) and node.id in self.names.kernels
        return is_kernel or self.names.dotted(node) in self.profile.host.values

    def _configs(self, node: ast.ListComp) -> bool:
        """`[triton.Config({"B": b}) for b in (64, 128)]`"""
        bound = {g.target.id for g in node.generators if isinstance(g.target, ast.Name)}
        plain = len(bound) == len(node.generators) and all(self._value(g.iter) and not g.ifs for g in node.generators)
        return plain and isinstance(node.elt, ast.Call) and self._config(node.elt, bound)

    def _config(self, node: ast.Call, bound: set[str]) -> bool:
        if self.names.dotted(node.func) != "triton.Config":
            return False
        parts = [*node.args, *(k.value for k in node.keywords)]
        options = self.profile.kernel.launch_options
        known = all(k.arg in options for k in node.keywords)
        return known and all(self._config_part(p, bound) for p in parts)

    def _config_part(self, node: ast.expr, bound: set[str]) -> bool:
        if isinstance(node, ast.Name) and node.id in bound:
            return True
        if isinstance(node, ast.Dict):
            return all(self._config_part(v, bound) for v in (*node.keys, *node.values) if v is not None)
        if isinstance(node, ast.BinOp):
            return self._config_part(node.left, bound) and self._config_part(node.right, bound)
        return self._value(node)

    def _only_read(self, name: str) -> bool:
        parents = {id(child): parent for parent in ast.walk(self.tree) for child in ast.iter_child_nodes(parent)}
        uses = [n for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id == name]
        loads = [n for n in uses if isinstance(n.ctx, ast.Load)]
        return len(uses) == len(loads) + 1 and all(self._reads(n, parents) for n in loads)

    def _reads(self, node: ast.Name, parents: dict[int, ast.AST]) -> bool:
        parent = parents[id(node)]
        if isinstance(parent, ast.Subscript):
            return parent.value is node and isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.Attribute):
            return parent.attr in _READING_METHODS and isinstance(parents[id(parent)], ast.Call)
        if isinstance(parent, ast.keyword):
            return parent.arg == "configs"
        if isinstance(parent, ast.Call):
            return isinstance(parent.func, ast.Name) and parent.func.id in _READING_BUILTINS
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node
        return isinstance(parent, ast.Compare | ast.FormattedValue)
