"""Lint of host code: the wrapper and its helpers.

Every statement is followed in order with what is known of each local name (a tensor, a list, ...), so that an operator
or an index on a tensor is found wherever it can be known to be one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from verify.lint.calls import CallRules
from verify.lint.kinds import MUTABLE, Env, Kind, join, leaves, merge, narrowed, tensor_parameters
from verify.lint.names import Findings, Names, endless, parameters
from verify.lint.profile import Profile


class HostRules(CallRules):
    """Follows one module's host functions, beginning at `function`."""

    def __init__(self, names: Names, profile: Profile, findings: Findings) -> None:
        super().__init__(names, profile, findings)
        self.returns: Kind | None = None
        self.used_as_tensors: dict[str, set[str]] = {}
        self.analysed: dict[tuple[str, tuple[Kind, ...]], Kind] = {}

    def function(self, name: str, kinds: Sequence[Kind]) -> Kind:
        """Check helper or wrapper `name` for parameters of these kinds; return the kind of its result."""
        key = (name, tuple(kinds))
        if key in self.analysed:
            return self.analysed[key]
        if len(self.analysed) >= self.profile.limits["analyses"]:
            self.findings.add("depth", 0, "helpers call each other in too many ways", "write fewer, plainer helpers")
            return Kind.VALUE
        self.analysed[key] = Kind.VALUE  # while it is being analysed: a recursive call tells nothing
        node = self.names.helpers[name]
        outer = self.env, self.returns, self.lambda_depth
        self.env, self.returns, self.lambda_depth = {}, None, 0
        if self.profile.bare and name not in self.used_as_tensors:
            self.used_as_tensors[name] = tensor_parameters(node)
        used_as_tensors = self.used_as_tensors.get(name, set())
        for arg, kind in zip(parameters(node), kinds, strict=False):
            known = Kind.TENSOR if kind is Kind.VALUE and arg.arg in used_as_tensors else kind
            self.bind_name(arg.arg, known, arg)
        self.block(node.body)
        self.analysed[key] = self.returns or Kind.VALUE
        self.env, self.returns, self.lambda_depth = outer
        return self.analysed[key]

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def branch(self, env: Env, body: Sequence[ast.stmt]) -> Env:
        """What is known at the end of a block that starts with `env`."""
        self.findings.work(len(env) // 4)
        self.env = dict(env)
        self.block(body)
        return self.env

    def branches(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        """Follow an if statement; a branch that leaves tells nothing about what comes after."""
        before = self.saved()
        holds, fails = narrowed(test, self.names)
        then, other = self.branch(before | holds, body), self.branch(before | fails, orelse)
        if leaves(body):
            self.env = other
        elif leaves(orelse):
            self.env = then
        else:
            self.env = merge(then, other)

    # -- statements -------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Lambda):
            self.plain_lambda(node.value)  # grid = lambda meta: (...)
        for target in node.targets:
            self._assign(target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        pairs = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)
        if pairs and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
            for kind, item in [(self.visit(v), t) for t, v in zip(target.elts, value.elts, strict=True)]:  # type: ignore[attr-defined]
                self.bind(item, kind)
            return
        dotted = self.names.dotted(value)
        aliases_module = dotted is not None and isinstance(target, ast.Name) and target.id in self.names.modules
        if aliases_module:
            self.refuse(value, str(dotted))
        else:
            self.bind(target, Kind.VALUE if isinstance(value, ast.Lambda) else self.visit(value), value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.annotation(node.annotation)
        if node.value is not None:
            self.bind(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            before = self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            self.operator(node, type(node.op).__name__ + "=", before, value)
        else:
            self.bind(node.target, value)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        kind = self.visit(node.value) if node.value is not None else Kind.VALUE
        self.returns = kind if self.returns is None else join(self.returns, kind)

    def visit_If(self, node: ast.If) -> None:
        self.truth(node.test)
        self.branches(node.test, node.body, node.orelse)

    def visit_For(self, node: ast.For) -> None:
        for _ in range(2):  # the second time with what the first left behind, if anything
            before = self.saved()
            self.bind_each(node.target, node.iter)
            self.loop_depth += 1
            self.env = merge(self.env, self.branch(self.env, node.body))
            self.loop_depth -= 1
            if self.env == before:
                break
        self.block(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        if endless(node):
            self.findings.add(
                "endless-loop", node, "a loop that never ends", "let the test of the loop fail at the end"
            )
        for _ in range(2):
            before = self.saved()
            self.truth(node.test)
            self.env = merge(self.env, self.branch(self.env, node.body))
            if self.env == before:
                break
        self.block(node.orelse)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.truth(node.test)
        self._message(node.msg)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._message(node.exc)
        self._message(node.cause)

    def _message(self, node: ast.expr | None) -> None:
        """An error's text, which may name the type of a value."""
        self.raising = True
        if node is not None:
            self.visit(node)
        self.raising = False

    def visit_Delete(self, node: ast.Delete) -> None:
        """Of items of a list or dict, or of local names."""
        for target in node.targets:
            item = isinstance(target, ast.Subscript) and self.visit(target.value) in MUTABLE
            local = isinstance(target, ast.Name) and target.id in self.env
            if not (self.profile.bare and (item or local)):
                self.generic_visit(node)
            if isinstance(target, ast.Subscript):
                self.visit(target.slice)

    def visit_Pass(self, node: ast.Pass) -> None:
        """Nothing to check."""

    def visit_Break(self, node: ast.Break) -> None:
        """Nothing to check."""

    def visit_Continue(self, node: ast.Continue) -> None:
        """Nothing to check."""

    # -- constructs outside the dialect whose contents are still worth checking ---------------------------------------

    def visit_Try(self, node: ast.Try) -> None:
        self.generic_visit(node)
        for handler in node.handlers:
            if handler.name:
                self.env[handler.name] = Kind.VALUE
        bodies = [node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody]
        for body in bodies:
            self.block(body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """`def grid(meta): return (...)` is a lambda with a name."""
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        if not self.profile.bare or node.decorator_list or returned is None:
            self.generic_visit(node)
            return
        for p in parameters(node):
            if p.annotation is not None:
                self.annotation(p.annotation)
        self.plain_lambda(ast.copy_location(ast.Lambda(node.args, returned), node))
        self.bind_name(node.name, Kind.VALUE, node)

    def visit_With(self, node: ast.With) -> None:
        calls = [i.context_expr for i in node.items if i.optional_vars is None]
        allowed = [
            c for c in calls if isinstance(c, ast.Call) and self.names.dotted(c.func) in self.profile.host.contexts
        ]
        if len(allowed) == len(node.items):
            for call in allowed:
                self.arguments(call)
            self.block(node.body)
            return
        self.generic_visit(node)
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, Kind.VALUE)
        self.block(node.body)

    def visit_Import(self, node: ast.Import) -> None:
        """Reported where imports are checked."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Reported where imports are checked."""
