"""What the rules of host code share while they follow it, and what is bound in it."""

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
    """The place that is being followed, and what is known there.

    env: the local names. places: where each is bound. tests: what `isinstance(...)` tells where it holds and where not,
    by the one name that it was given, until that or its subject is another. loops, lambdas: how many are around it; a
    helper that is called in a loop is in it.
    raising: whether it is in the message of an error, or in the test on which nothing but an error depends.
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
        """A copy of what is known."""
        self.findings.work(len(self.env) // 16)
        return dict(self.env)

    def bind(self, name: str, kind: Kind, at: ast.AST) -> None:
        """From here on, `name` is a local name."""
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
        """A name that was bound to what may be a test: bound elsewhere too, it tells nothing."""
        told = self.narrowed(test)
        if len(self.places[name]) == 1 and any(told):
            self.tests[name] = told

    def narrowed(self, test: ast.expr) -> tuple[Env, Env]:
        """What a test tells of names where it holds, and where not."""
        return narrowed(test, self.names, self.tests)

    def not_in_dialect(self, node: ast.AST) -> Kind:
        """Report a construct without a rule of its own, of which nothing is known."""
        name = type(node).__name__
        default = "write it with assignments, if, for, calls and return"
        self.findings.add("construct", node, f"{name} in host code", self.profile.constructs.get(name, default))
        return Kind.VALUE

    def handed_on(self, node: ast.AST, *kinds: Kind) -> None:
        """Report a use that reads something off a kernel or a device, but for the sake of an error."""
        if not self.raising and OPAQUE.intersection(kinds):
            which = "a kernel" if Kind.KERNEL in kinds else "a device"
            what = f"{shown(node)[:60]} reads something off {which}, which may tell where the program runs"
            self.findings.add("introspection", node, what, HANDED_ON)

    def not_in_lambda(self, node: ast.AST, what: str, instead: str) -> None:
        """Report a call that only a function's body may make."""
        if self.lambdas:
            self.findings.add("lambda", node, f"{what} in a lambda", instead)


class TargetRules:
    """Binds the targets of assignments, loops and comprehensions."""

    def __init__(self, scope: Scope, expressions: ExpressionRules) -> None:
        self.scope, self.findings, self.expressions = scope, scope.findings, expressions

    def bind(self, target: ast.expr, kind: Kind, value: ast.expr | None = None) -> None:
        """Record what an assignment (of `value`, where it is known) tells about its target."""
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
            what = f"assignment to {shown(target)[:60]}"
            self.findings.add("assignment", target, what, "use a local variable; nothing may outlive the call")

    def _store(self, target: ast.Subscript, kind: Kind, value: ast.expr | None) -> None:
        base = self.expressions.visit(target.value)
        self.expressions.visit(target.slice)
        fills = isinstance(value, ast.Constant) and self.expressions.makes_view(target.slice)
        if base is Kind.TENSOR and not fills:
            what = f"assignment into tensor {shown(target)[:60]}"
            self.findings.add("tensor-indexing", target, what, "let a kernel tl.store the values, with a mask")
        elif base is Kind.LIST and kind is Kind.TENSOR and isinstance(target.value, ast.Name):
            self.scope.env[target.value.id] = Kind.TENSOR_LIST

    def bind_each(self, target: ast.expr, iterable: ast.expr) -> None:
        """Bind a loop's target to the elements of `iterable`, through zip and enumerate."""
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
