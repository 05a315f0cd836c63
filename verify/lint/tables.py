"""Module-level values in a bare file: annotated constants, and tables that are never changed.

A bare file comes without our declarations, such as an LLM's plain answer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property

from verify.lint.names import Findings, Names, pairs
from verify.lint.profile import Profile
from verify.syntax import children, walk

_READING_METHODS = frozenset({"get", "items", "keys", "values", "index", "count", "copy"})
_READING_BUILTINS = frozenset(
    {"len", "sorted", "tuple", "list", "dict", "set", "min", "max", "enumerate", "zip", "any"}
)
_TELLING_METHODS = frozenset({"keys", "index", "count"})  # methods that return no item
_ALIASES = 8  # names that may alias one table
_MUTABLE = frozenset({"dict", "list", "set"})
_CONTAINERS = _MUTABLE | {"frozenset", "tuple"}


class ModuleValues:
    """Classifier for module-level assignments: plain values that never change, or others."""

    def __init__(
        self,
        tree: ast.Module,
        names: Names,
        profile: Profile,
        findings: Findings,
        is_literal: Callable[[ast.expr], bool],
    ) -> None:
        self.tree, self.names, self.profile, self.findings = tree, names, profile, findings
        self.is_literal = is_literal

    def allow(self, node: ast.stmt) -> bool:
        """Return True if a statement defines a constant, or a table that is only read."""
        if isinstance(node, ast.AnnAssign):
            return self._plain_annotation(node.annotation) and self._stays(node.target, node.value)
        if not isinstance(node, ast.Assign):
            return False
        return all(self._stays(target, value) for t in node.targets for target, value in pairs(t, node.value))

    def _stays(self, target: ast.expr | None, value: ast.expr | None) -> bool:
        """Return True if a value is plain, and immutable or never changed."""
        if not isinstance(target, ast.Name) or value is None or not self._value(value):
            return False
        level = self._level(value)
        stores = [n for n in self._uses[target.id] if not isinstance(n.ctx, ast.Load)]
        return not level or (len(stores) == 1 and self._only_read(target.id, level, frozenset()))

    def _level(self, node: ast.expr) -> int:
        """Return the number of lookups after which a value is certainly immutable; 0 if it is immutable itself."""
        if isinstance(node, ast.Dict):
            return 1 + max(map(self._level, node.values), default=0)
        if isinstance(node, ast.List | ast.Set):
            return 1 + max(map(self._level, node.elts), default=0)
        if isinstance(node, ast.Tuple):
            inside = max(map(self._level, node.elts), default=0)
            return inside + bool(inside)
        if isinstance(node, ast.Call) and self._made(node):
            own_level = int(self._made(node) in _MUTABLE)
            return max([own_level, *map(self._level, node.args), *(1 + self._level(k.value) for k in node.keywords)])
        return int(isinstance(node, ast.ListComp))

    def _made(self, node: ast.expr) -> str:
        """Return `tuple` for `tuple([1, 2])`, and likewise for other containers; '' for anything else."""
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        return name if name in _CONTAINERS and not self.names.is_module_level(name) else ""

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
        if isinstance(node, ast.Call) and self._made(node):
            return all(map(self._value, [*node.args, *(k.value for k in node.keywords)]))
        if isinstance(node, ast.Call):
            return self._config(node, set())
        is_kernel = isinstance(node, ast.Name) and node.id in self.names.kernels
        return is_kernel or self.names.dotted(node) in self.profile.host.values

    def _configs(self, node: ast.ListComp) -> bool:
        """Return True for `[triton.Config({"B": b}) for b in (64, 128)]` and the like."""
        targets = [
            t for g in node.generators for t in (g.target.elts if isinstance(g.target, ast.Tuple) else [g.target])
        ]
        bound = {target.id for target in targets if isinstance(target, ast.Name)}
        plain = len(bound) == len(targets) and all(self._value(g.iter) and not g.ifs for g in node.generators)
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

    def _only_read(self, name: str, level: int, seen: frozenset[str]) -> bool:
        """Return True if no use of a table's name could change the table, or a table inside it."""
        plain = [n for n in self._uses[name] if not isinstance(self._parents[id(n)], ast.AugAssign)]
        loads = [n for n in plain if isinstance(n.ctx, ast.Load)]
        return len(plain) == len(self._uses[name]) and all(self._reads(n, level, seen | {name}) for n in loads)

    @cached_property
    def _parents(self) -> dict[int, ast.AST]:
        return {id(child): parent for parent in walk(self.tree) for child in children(parent)}

    @cached_property
    def _uses(self) -> dict[str, list[ast.Name]]:
        uses: dict[str, list[ast.Name]] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.Name):
                uses.setdefault(node.id, []).append(node)
        return uses

    def _reads(self, node: ast.expr, level: int, seen: frozenset[str]) -> bool:
        """Return True if the code around a table with this level only reads it, and the tables inside it."""
        self.findings.work()
        parent = self._parents[id(node)]
        if isinstance(parent, ast.Subscript):
            return parent.value is node and isinstance(parent.ctx, ast.Load) and self._reads_item(parent, level, seen)
        if isinstance(parent, ast.Attribute):
            return self._method(parent, level, seen)
        if isinstance(parent, ast.IfExp):
            return parent.test is node or self._reads(parent, level, seen)
        if isinstance(parent, ast.Assign):
            names = {t.id for t in parent.targets if isinstance(t, ast.Name)}
            plain = len(names) == len(parent.targets) and len(seen) <= _ALIASES
            return plain and all(self._only_read(n, level, seen) for n in names - seen)
        return isinstance(parent, ast.Compare | ast.FormattedValue) or (level == 1 and self._copies(node, parent))

    def _reads_item(self, node: ast.Subscript, level: int, seen: frozenset[str]) -> bool:
        """Return True if a value looked up in a table with this level is only read."""
        if level == 1:
            return True  # the item is immutable, or a slice copies the table
        return self._reads(node, level if isinstance(node.slice, ast.Slice) else level - 1, seen)

    def _method(self, node: ast.Attribute, level: int, seen: frozenset[str]) -> bool:
        call = self._parents[id(node)]
        if not isinstance(call, ast.Call) or node.attr not in _READING_METHODS:
            return False
        if level == 1 or node.attr in _TELLING_METHODS:
            return True
        return node.attr == "get" and call.func is node and self._reads(call, level - 1, seen)

    def _copies(self, node: ast.expr, parent: ast.AST) -> bool:
        """Return True if the code around a table reads its items or copies it."""
        if isinstance(parent, ast.keyword):
            call = self._parents[id(parent)]
            # `**TABLE` makes a copy.
            return parent.arg is None or (isinstance(call, ast.Call) and self._decorates(call))
        if isinstance(parent, ast.Dict):
            return any(k is None and v is node for k, v in zip(parent.keys, parent.values, strict=True))
        if isinstance(parent, ast.Call):
            name = parent.func.id if isinstance(parent.func, ast.Name) else ""
            builtin = name in _READING_BUILTINS and not self.names.is_module_level(name)
            return builtin or self._decorates(parent)
        return isinstance(parent, ast.For | ast.comprehension) and parent.iter is node

    def _decorates(self, node: ast.Call) -> bool:
        """Return True for a decorator call such as `triton.autotune(configs=TABLE, ...)`."""
        return self.names.dotted(node.func) in self.profile.decorators
