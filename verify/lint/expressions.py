"""Lint rules for expressions in host code, which also determine their kinds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from verify.lint.calls import CallRules, Helper
from verify.lint.kinds import HOLDS_TENSORS, MUTABLE, Kind, element, join, of_display, of_operator
from verify.lint.names import parameters, shown
from verify.lint.references import check_attribute, check_name, refuse
from verify.lint.scope import Scope, TargetRules
from verify.lint.texts import METHODS

_OPERATOR = "compute it in a @triton.jit kernel: pass the tensor, tl.load its elements, tl.store the result"
_ALIGNMENT = 16  # bytes: Triton specializes kernels for this alignment, and a replayed launch is checked for it
_TRUTH = "test `is not None` for an optional tensor; decide by shape or dtype, or inside the kernel"
_COPIES = (ast.Compare, ast.List, ast.ListComp, ast.BoolOp)  # as an index, these copy the selected elements


class ExpressionRules:
    """Visitor that reports violations in an expression and returns its Kind.

    Expressions contain calls and calls contain expressions, so this object owns the rules for both. `helper` is
    described in CallRules.
    """

    def __init__(self, scope: Scope, helper: Helper) -> None:
        self.scope, self.names, self.profile, self.findings = scope, scope.names, scope.profile, scope.findings
        self.targets = TargetRules(scope, self)
        self.calls = CallRules(scope, self, helper)

    def visit(self, node: ast.expr) -> Kind:
        self.findings.work()
        rule: Callable[[ast.expr], Kind] = getattr(self, f"visit_{type(node).__name__}", self.scope.not_in_dialect)
        return rule(node)

    def each(self, parts: Iterable[ast.expr | None]) -> list[Kind]:
        """Return the kinds of all parts that are not None."""
        return [self.visit(part) for part in parts if part is not None]

    # -- names, calls, lambdas --------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> Kind:
        return check_name(node, self.scope)

    def visit_Attribute(self, node: ast.Attribute) -> Kind:
        value, dotted = node.value, self.names.dotted(node)
        if dotted is not None:
            if dotted not in self.profile.host.values and not self.names.is_foreign(node):
                refuse(node, dotted, self.scope)
            return Kind.VALUE
        if node.attr == "__name__" and isinstance(value, ast.Call) and getattr(value.func, "id", "") == "type":
            return self.visit(value)  # refused, except inside an error message
        if node.attr in METHODS:  # calls do not come here; a method's text holds an address
            problem = f"the method {shown(node)[:60]} without a call"
            self.findings.add("introspection", node, problem, "call it, or pass the number that it returns")
        return check_attribute(node, self.visit(value), self.scope)

    def visit_Call(self, node: ast.Call) -> Kind:
        return self.calls.kind(node)

    def visit_Lambda(self, node: ast.Lambda) -> Kind:
        problem = "lambda outside a grid or a sort key"
        self.findings.add("lambda", node, problem, "write a function at module level, or the expression itself")
        return Kind.VALUE

    def lambda_or_value(self, node: ast.expr) -> Kind:
        """Visit a grid or sort key, which may be a lambda: arithmetic on numbers, names and metadata."""
        if isinstance(node, ast.Attribute) and self.names.dotted(node) is None:  # the method that sorts
            return check_attribute(node, self.visit(node.value), self.scope)
        if not isinstance(node, ast.Lambda):
            return self.visit(node)
        outer = self.scope.saved()
        for arg in parameters(node):
            self.scope.bind(arg.arg, Kind.VALUE, arg)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit_Lambda(node)
        self.scope.lambdas += 1
        self.scope.handed_on(node, self.visit(node.body))
        self.scope.lambdas -= 1
        self.scope.env = outer
        return Kind.VALUE

    # -- operators --------------------------------------------------------------------------------------------------

    def operator(self, node: ast.AST, symbol: str, *kinds: Kind) -> None:
        """Report an operator on a tensor, or on a value that may only be passed on."""
        self.scope.handed_on(node, *kinds)
        if Kind.TENSOR in kinds:
            problem = f"operator {symbol} on a tensor in host code"
            self.findings.add("tensor-operator", node, problem, _OPERATOR)

    def truth(self, test: ast.expr) -> Kind:
        """Visit a condition and return its kind."""
        kind = self._alignment(test) or self.visit(test)
        self._decides(test, kind)
        return kind

    def _decides(self, test: ast.expr, kind: Kind) -> None:
        """Report a condition that depends on a tensor or a device."""
        self.scope.handed_on(test, *({kind} & {Kind.DEVICE}))  # the existence of a kernel does not depend on the device
        if kind is Kind.TENSOR:
            self.findings.add("tensor-operator", test, "truth of a tensor in host code", _TRUTH)

    def _alignment(self, test: ast.expr) -> Kind | None:
        """Visit `x.data_ptr() % 16`, which is only compared with 0. Return None for anything else."""
        tensor = _asked_alignment(test) if self.profile.bare else None
        if tensor is None:
            return None
        self.visit(tensor)
        return Kind.VALUE

    def visit_BinOp(self, node: ast.BinOp) -> Kind:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.MatMult):
            self.operator(node, "@", Kind.TENSOR)
        else:
            self.operator(node, type(node.op).__name__, left, right)
        return of_operator(node.op, left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Kind:
        if isinstance(node.op, ast.Not):
            return Kind.DEVICE if self.truth(node.operand) is Kind.DEVICE else Kind.VALUE
        kind = self.visit(node.operand)
        self.operator(node, type(node.op).__name__, kind)
        return kind

    def visit_Compare(self, node: ast.Compare) -> Kind:
        zero = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value == 0
        kinds = [(self._alignment(node.left) if zero else None) or self.visit(node.left), *self.each(node.comparators)]
        if Kind.DEVICE in kinds and set(kinds) != {Kind.DEVICE}:  # two devices may be compared
            self.scope.handed_on(node, Kind.DEVICE)
            return Kind.DEVICE
        if set(kinds) != {Kind.DEVICE} and not all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            self.operator(node, type(node.ops[0]).__name__, *kinds)
        return Kind.VALUE

    def visit_BoolOp(self, node: ast.BoolOp) -> Kind:
        """Visit `and` or `or`.

        Each value but the last decides how evaluation continues, so it is checked as a condition. The last
        value is only returned. It is evaluated if the earlier ones are all true, or all false for `or`.
        """
        outer, kinds = self.scope.saved(), []
        for value in node.values[:-1]:
            kinds.append(self.truth(value))
            self.scope.env = self.scope.env | self.scope.narrowed(value)[isinstance(node.op, ast.Or)]
        last = self._alignment(node.values[-1]) or self.visit(node.values[-1])
        self.scope.env = outer
        if last is Kind.TENSOR:
            self._decides(node.values[-1], last)
        return Kind.DEVICE if Kind.DEVICE in (*kinds, last) else Kind.VALUE

    def visit_IfExp(self, node: ast.IfExp) -> Kind:
        self.truth(node.test)
        outer = self.scope.saved()
        holds, fails = self.scope.narrowed(node.test)
        self.scope.env = outer | holds
        body = self.visit(node.body)
        self.scope.env = outer | fails
        orelse = self.visit(node.orelse)
        self.scope.env = outer
        return join(body, orelse)

    def visit_Subscript(self, node: ast.Subscript) -> Kind:
        base = self.visit(node.value)
        self.scope.handed_on(node, self.visit(node.slice))
        if base is Kind.TENSOR:
            if not self.makes_view(node.slice):
                problem = f"indexing of a tensor in host code: {shown(node)[:60]}"
                hint = "use select(dim, i) or narrow(dim, start, length), or index in the kernel"
                self.findings.add("tensor-indexing", node, problem, hint)
            return Kind.TENSOR
        if base is Kind.KERNEL:
            self.findings.add("launch", node, "kernel[grid] without a call", "launch it: kernel[(grid,)](arguments)")
        is_part = isinstance(node.slice, ast.Slice) and base in HOLDS_TENSORS | MUTABLE
        return base if is_part else element(base)

    def makes_view(self, index: ast.expr) -> bool:
        """Return True if an index makes a view, in a profile that allows that.

        Such indices are integers, slices, None and `...`, but not tensors.
        """
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return self.profile.bare and not any(
            isinstance(p, _COPIES) or self.visit(p) in HOLDS_TENSORS | MUTABLE for p in parts
        )

    def visit_Slice(self, node: ast.Slice) -> Kind:
        return Kind.DEVICE if Kind.DEVICE in self.each([node.lower, node.upper, node.step]) else Kind.VALUE

    # -- displays ---------------------------------------------------------------------------------------------------

    def visit_List(self, node: ast.List | ast.Tuple) -> Kind:
        return of_display(self.each(node.elts), mutable=isinstance(node, ast.List))

    visit_Tuple = visit_List

    def visit_Dict(self, node: ast.Dict) -> Kind:
        return self._holder(self.each([*node.keys, *node.values]))

    def visit_Set(self, node: ast.Set) -> Kind:
        return self._holder(self.each(node.elts))

    def _holder(self, kinds: list[Kind]) -> Kind:
        """Return the kind for a dict or set with these values."""
        return Kind.DEVICE if Kind.DEVICE in kinds else Kind.LIST

    def _comprehension(self, generators: list[ast.comprehension], *elements: ast.expr) -> Kind:
        outer = self.scope.saved()
        self.scope.loops += 1
        for g in generators:
            self.targets.bind_each(g.target, g.iter)
            for test in g.ifs:
                self.truth(test)
        kinds = self.each(elements)
        self.scope.env = outer
        self.scope.loops -= 1
        return kinds[-1]

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Kind:
        return of_display([self._comprehension(node.generators, node.elt)], mutable=isinstance(node, ast.ListComp))

    visit_GeneratorExp = visit_ListComp

    def visit_SetComp(self, node: ast.SetComp) -> Kind:
        return self._holder([self._comprehension(node.generators, node.elt)])

    def visit_DictComp(self, node: ast.DictComp) -> Kind:
        return self._holder([self._comprehension(node.generators, node.key, node.value)])

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Kind:
        for value in (v for v in node.values if isinstance(v, ast.FormattedValue)):
            kind = self.visit(value.value)
            self.scope.handed_on(value.value, kind)
            if _has_address(value.value):
                problem = f"the text of {shown(value.value)[:60]} holds an address"
                self.findings.add("introspection", value, problem, "format numbers, shapes and dtypes")
            if kind in HOLDS_TENSORS:
                problem = "a tensor formatted as text reads its data"
                self.findings.add("tensor-builtin", value, problem, "format its shape or dtype")
            if value.format_spec is not None:
                self.visit(value.format_spec)
        return Kind.VALUE

    def visit_Constant(self, node: ast.Constant) -> Kind:
        return Kind.VALUE

    def visit_Starred(self, node: ast.Starred) -> Kind:
        return element(self.visit(node.value))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Kind:
        kind = self.visit(node.value)
        self.targets.bind(node.target, kind)
        return kind


def _has_address(node: ast.expr) -> bool:
    """Return True for a generator or iterator, whose text holds its address."""
    iterates = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("zip", "enumerate", "reversed")
    return iterates or isinstance(node, ast.GeneratorExp)


def _asked_alignment(node: ast.expr) -> ast.expr | None:
    """Return x for `x.data_ptr() % 16`.

    The test for 0 reveals only the part of the address on which a kernel's speed depends.
    """
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Call)):
        return None
    call, by = node.left, node.right
    sixteen = isinstance(by, ast.Constant) and by.value == _ALIGNMENT
    plain = isinstance(call.func, ast.Attribute) and call.func.attr == "data_ptr" and not call.args + call.keywords
    return call.func.value if sixteen and plain else None  # type: ignore[attr-defined]  # `plain` implies an attribute
