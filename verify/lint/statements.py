"""Lint rules for statements in host code, and their effect on the local names.

The rules follow every statement in order and track the known kind of each local name (a tensor, a list, ...).
They can therefore find an operator or an index on a tensor wherever its kind is known.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from verify.lint.expressions import ExpressionRules
from verify.lint.kinds import MUTABLE, Env, Kind, join, leaves, merge
from verify.lint.names import check_end, parameters
from verify.lint.references import check_annotation, refuse
from verify.lint.scope import Scope

_ROW = (ast.Tuple, ast.List)


class StatementRules:
    """Walker over blocks of statements.

    `returns` is the joined kind of all returned values so far, or None before the first return.
    """

    def __init__(self, scope: Scope, expressions: ExpressionRules) -> None:
        self.scope, self.names, self.profile, self.findings = scope, scope.names, scope.profile, scope.findings
        self.expressions, self.visit, self.bind = expressions, expressions.visit, expressions.targets.bind
        self.returns: Kind | None = None

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.findings.work()
            rule = getattr(self, f"follow_{type(statement).__name__}", self.scope.not_in_dialect)
            rule(statement)

    def _branch(self, env: Env, body: Sequence[ast.stmt]) -> Env:
        """Follow a block that starts with `env`, and return the known kinds at its end."""
        self.findings.work(len(env) // 4)
        self.scope.env = dict(env)
        self.block(body)
        return self.scope.env

    def follow_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Lambda):
            self.expressions.lambda_or_value(node.value)  # grid = lambda meta: (...)
        for target in node.targets:
            self._assign(target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        dotted = self.names.dotted(value)
        if isinstance(target, _ROW) and isinstance(value, _ROW) and len(target.elts) == len(value.elts):
            for item, kind in zip(target.elts, self.expressions.each(value.elts), strict=True):
                self.bind(item, kind)
        elif dotted is not None and isinstance(target, ast.Name) and target.id in self.names.modules:
            refuse(value, dotted, self.scope)
        else:
            self.bind(target, Kind.VALUE if isinstance(value, ast.Lambda) else self.visit(value), value)
            if isinstance(target, ast.Name):
                self.scope.remember(target.id, value)

    def follow_AnnAssign(self, node: ast.AnnAssign) -> None:
        check_annotation(node.annotation, self.scope)
        if node.value is not None:
            self.bind(node.target, self.visit(node.value))

    def follow_AugAssign(self, node: ast.AugAssign) -> None:
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            before = self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            self.expressions.operator(node, type(node.op).__name__ + "=", before, value)
        else:
            self.bind(node.target, value)

    def follow_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Treat `def grid(meta): return (...)` like a lambda with a name."""
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        returned = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        if not self.profile.bare or node.decorator_list or returned is None:
            self.scope.not_in_dialect(node)
            return
        for p in parameters(node):
            check_annotation(p.annotation, self.scope)
        self.expressions.lambda_or_value(ast.copy_location(ast.Lambda(node.args, returned), node))
        self.scope.bind(node.name, Kind.VALUE, node)

    def follow_Delete(self, node: ast.Delete) -> None:
        """Allow the deletion of items in a list or dict, and of local names."""
        for target in node.targets:
            item = isinstance(target, ast.Subscript) and self.visit(target.value) in MUTABLE
            local = isinstance(target, ast.Name) and target.id in self.scope.env
            if not (self.profile.bare and (item or local)):
                self.scope.not_in_dialect(node)
            if isinstance(target, ast.Subscript):
                self.visit(target.slice)

    def follow_If(self, node: ast.If) -> None:
        """Follow both branches and merge their results, except from a branch that leaves the block."""
        self._test(node.test, bool(node.body) and isinstance(node.body[0], ast.Raise) and not node.orelse)
        before = self.scope.saved()
        holds, fails = self.scope.narrowed(node.test)
        then, other = self._branch(before | holds, node.body), self._branch(before | fails, node.orelse)
        if leaves(node.body):
            self.scope.env = other
        elif leaves(node.orelse):
            self.scope.env = then
        else:
            self.scope.env = merge(then, other)

    def follow_For(self, node: ast.For) -> None:
        for _ in range(2):  # the second pass starts with the kinds that the first left, if they differ
            before = self.scope.saved()
            self.expressions.targets.bind_each(node.target, node.iter)
            self.scope.loops += 1
            self.scope.env = merge(self.scope.env, self._branch(self.scope.env, node.body))
            self.scope.loops -= 1
            if self.scope.env == before:
                break
        self.block(node.orelse)

    def follow_While(self, node: ast.While) -> None:
        check_end(node, self.findings)
        for _ in range(2):
            before = self.scope.saved()
            self.scope.loops += 1
            self.expressions.truth(node.test)
            self.scope.env = merge(self.scope.env, self._branch(self.scope.env, node.body))
            self.scope.loops -= 1
            if self.scope.env == before:
                break
        self.block(node.orelse)

    def follow_Expr(self, node: ast.Expr) -> None:
        self.visit(node.value)

    def follow_Return(self, node: ast.Return) -> None:
        kind = self.visit(node.value) if node.value is not None else Kind.VALUE
        self.returns = kind if self.returns is None else join(self.returns, kind)

    def follow_Assert(self, node: ast.Assert) -> None:
        self._test(node.test, True)
        self._message(node.msg)

    def follow_Raise(self, node: ast.Raise) -> None:
        self._message(node.exc)
        self._message(node.cause)

    def _test(self, node: ast.expr, raises: bool) -> None:
        """Check a condition. `raises` is True if it only decides about raising an error."""
        self.scope.raising = raises
        self.expressions.truth(node)
        self.scope.raising = False

    def _message(self, node: ast.expr | None) -> None:
        """Check an error message, which may contain a value's type and its device."""
        self.scope.raising = True
        self.expressions.each([node])
        self.scope.raising = False

    def _nothing(self, node: ast.stmt) -> None:
        """Ignore the statement. Imports are reported by the import rule."""

    follow_Pass = follow_Break = follow_Continue = follow_Import = follow_ImportFrom = _nothing

    # -- constructs outside the dialect whose contents are still worth checking ---------------------------------------

    def follow_Try(self, node: ast.Try) -> None:
        self.scope.not_in_dialect(node)
        for handler in node.handlers:
            if handler.name:
                self.scope.env[handler.name] = Kind.VALUE
        for body in [node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody]:
            self.block(body)

    def follow_With(self, node: ast.With) -> None:
        """Allow the contexts in the profile, unless they are bound to a name."""
        plain = [i.context_expr for i in node.items if i.optional_vars is None]
        contexts = self.profile.host.contexts
        calls = [c for c in plain if isinstance(c, ast.Call) and self.names.dotted(c.func) in contexts]
        if len(calls) == len(node.items):
            for call in calls:
                self.expressions.calls.arguments.kinds(call)
        else:
            self.scope.not_in_dialect(node)
            for item in node.items:
                self.visit(item.context_expr)
                if item.optional_vars is not None:
                    self.bind(item.optional_vars, Kind.VALUE)
        self.block(node.body)
