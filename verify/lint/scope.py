"""State that the rules for host code share while they walk through it, and the binding of names.

`Scope` holds the known kinds of local names; `TargetRules` binds assignment targets.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from verify.lint.kinds import OPAQUE, Env, Kind, element, narrowed
from verify.lint.names import Findings, Names, shown
from verify.lint.profile import Profile

if TYPE_CHECKING:
    from verify.lint.expressions import ExpressionRules

HANDED_ON = "launch kernels and allocate with device=x.device; a wrapper does the same wherever it runs"


@dataclass
class Scope:
    """The current position in host code, and everything known there.

    Attributes:
        names: Names that the file defines or imports.
        profile: The dialect.
        findings: Collector for violations.
        env: Kinds of the local names.
        tests: For a name bound to an `isinstance(...)` result: the kinds if it is true, and if it is false. An
            entry is dropped when its name or subject is rebound.
        places: Node ids at which each name is bound.
        loops: Number of enclosing loops. A helper that is called in a loop counts as inside it.
        lambdas: Number of enclosing lambdas.
        raising: True inside an error message, or inside a test that only decides if an error is raised.
    """

    names: Names
    profile: Profile
    findings: Findings
    env: Env = field(default_factory=dict)
    tests: dict[str, tuple[Env, Env]] = field(default_factory=dict)
    places: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    loops: int = 0
    lambdas: int = 0
    raising: bool = False

    def saved(self) -> Env:
        """Return a copy of the known kinds."""
        self.findings.work(len(self.env) // 16)
        return dict(self.env)

    def bind(self, name: str, kind: Kind, at: ast.AST) -> None:
        """Bind `name` as a local name from here on."""
        self.findings.work()
        if self.names.is_module_level(name):
            self.findings.add("shadowing", at, f"{name!r} is bound again", "choose another name for the local value")
        elif name.startswith("__"):
            self.findings.add("shadowing", at, f"{name!r} is a special name", "choose a name without underscores")
        self.places[name].add(id(at))
        self.tests = {
            known: (holds, fails)
            for known, (holds, fails) in self.tests.items()
            if known != name and name not in holds and name not in fails
        }
        self.env[name] = kind

    def remember(self, name: str, test: ast.expr) -> None:
        """Remember a test result bound to a name, unless the name is bound elsewhere too."""
        implied = self.narrowed(test)
        if len(self.places[name]) == 1 and any(implied):
            self.tests[name] = implied

    def narrowed(self, test: ast.expr) -> tuple[Env, Env]:
        """Return the kinds that a test implies for names if it is true, and if it is false."""
        return narrowed(test, self.names, self.tests)

    def not_in_dialect(self, node: ast.AST) -> Kind:
        """Report a construct without its own rule, about which nothing is known."""
        name = type(node).__name__
        default = "write it with assignments, if, for, calls and return"
        self.findings.add("construct", node, f"{name} in host code", self.profile.constructs.get(name, default))
        return Kind.VALUE

    def handed_on(self, node: ast.AST, *kinds: Kind) -> None:
        """Report a use that reads something from a kernel or a device, except inside an error message."""
        if not self.raising and OPAQUE.intersection(kinds):
            source = "a kernel" if Kind.KERNEL in kinds else "a device"
            problem = f"{shown(node)[:60]} reads something off {source}, which may tell where the program runs"
            self.findings.add("introspection", node, problem, HANDED_ON)

    def not_in_lambda(self, node: ast.AST, call: str, instead: str) -> None:
        """Report a call that is only allowed in a function body."""
        if self.lambdas:
            self.findings.add("lambda", node, f"{call} in a lambda", instead)


class TargetRules:
    """Binding of targets in assignments, loops and comprehensions."""

    def __init__(self, scope: Scope, expressions: ExpressionRules) -> None:
        self.scope, self.findings, self.expressions = scope, scope.findings, expressions

    def bind(self, target: ast.expr, kind: Kind, value: ast.expr | None = None) -> None:
        """Bind a target to a value with this kind. `value` is the assigned expression, if known."""
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, kind, target)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, Kind.TENSOR_LIST if kind is Kind.TENSOR else Kind.LIST)
        elif isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self.bind(item, element(kind))
        elif isinstance(target, ast.Subscript):
            self._store(target, kind, value)
        else:
            problem = f"assignment to {shown(target)[:60]}"
            self.findings.add("assignment", target, problem, "use a local variable; nothing may outlive the call")

    def _store(self, target: ast.Subscript, kind: Kind, value: ast.expr | None) -> None:
        base = self.expressions.visit(target.value)
        self.expressions.visit(target.slice)
        fills = isinstance(value, ast.Constant) and self.expressions.makes_view(target.slice)
        if base is Kind.TENSOR and not fills:
            problem = f"assignment into tensor {shown(target)[:60]}"
            self.findings.add("tensor-indexing", target, problem, "let a kernel tl.store the values, with a mask")
        elif base is Kind.LIST and kind is Kind.TENSOR and isinstance(target.value, ast.Name):
            self.scope.env[target.value.id] = Kind.TENSOR_LIST

    def bind_each(self, target: ast.expr, iterable: ast.expr) -> None:
        """Bind a loop's target to the elements in `iterable`, looking through zip and enumerate."""
        kind = self.expressions.visit(iterable)
        if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and isinstance(target, ast.Tuple):
            sources: dict[str, list[ast.expr | None]] = {"zip": [*iterable.args], "enumerate": [None, *iterable.args]}
            inner = sources.get(iterable.func.id, [])
            if len(inner) == len(target.elts):
                for item, source in zip(target.elts, inner, strict=True):
                    if source is None:
                        self.bind(item, Kind.VALUE)
                    else:
                        self.bind_each(item, source)
                return
        self.bind(target, element(kind))
