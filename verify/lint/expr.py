"""Lint of the expressions of host code, and what is known of their values."""

from __future__ import annotations

import ast
import builtins

from verify.lint.kinds import HOLDS_TENSORS, Env, Kind, element, join, narrowed, of_attribute, of_display
from verify.lint.names import Findings, Names, refused_name, shown, similar
from verify.lint.profile import Profile

_OPERATOR = "compute it in a @triton.jit kernel: pass the tensor, tl.load its elements, tl.store the result"
_ALIGNMENT = 4096  # bytes; a page
_TRUTH = "test `is not None` for an optional tensor; decide by shape or dtype, or inside the kernel"


class ExpressionRules(ast.NodeVisitor):
    """Visiting an expression reports what is wrong in it and returns its Kind. `env`: the local names."""

    def __init__(self, names: Names, profile: Profile, findings: Findings) -> None:
        self.names, self.profile, self.findings = names, profile, findings
        self.loop_depth = 0
        self.env: Env = {}

    def visit(self, node: ast.AST) -> Kind:
        """The kind of an expression; for a statement the result means nothing."""
        self.findings.work()
        kind: Kind = super().visit(node)
        return kind

    def generic_visit(self, node: ast.AST) -> Kind:
        """A construct without a rule of its own is not in the dialect."""
        name = type(node).__name__
        default = "write it with assignments, if, for, calls and return"
        self.findings.add("construct", node, f"{name} in host code", self.profile.constructs.get(name, default))
        return Kind.VALUE

    # -- names ------------------------------------------------------------------------------------------------------

    def saved(self) -> Env:
        """A copy of what is known."""
        self.findings.work(len(self.env) // 16)
        return dict(self.env)

    def bind_name(self, name: str, kind: Kind, at: ast.AST) -> None:
        self.findings.work()
        if self.names.is_module_level(name):
            self.findings.add("shadowing", at, f"{name!r} is bound again", "choose another name for the local value")
        elif name.startswith("__"):
            self.findings.add("shadowing", at, f"{name!r} is a special name", "choose a name without underscores")
        self.env[name] = kind

    def bind(self, target: ast.expr, kind: Kind, value: ast.expr | None = None) -> None:
        """Record what an assignment (of `value`, where it is known) tells about its target."""
        if isinstance(target, ast.Name):
            self.bind_name(target.id, kind, target)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, Kind.TENSOR_LIST if kind is Kind.TENSOR else Kind.LIST)
        elif isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self.bind(item, element(kind))
        elif isinstance(target, ast.Subscript):
            self._store_subscript(target, kind, value)
        else:
            what = f"assignment to {shown(target)[:60]}"
            self.findings.add("assignment", target, what, "use a local variable; nothing may outlive the call")

    def _store_subscript(self, target: ast.Subscript, kind: Kind, value: ast.expr | None = None) -> None:
        base = self.visit(target.value)
        self.visit(target.slice)
        fills = value is not None and isinstance(value, ast.Constant) and self._basic_index(target.slice)
        if base is Kind.TENSOR and not fills:
            what = f"assignment into tensor {shown(target)[:60]}"
            self.findings.add("tensor-indexing", target, what, "let a kernel tl.store the values, with a mask")
        elif base is Kind.LIST and kind is Kind.TENSOR and isinstance(target.value, ast.Name):
            self.env[target.value.id] = Kind.TENSOR_LIST

    def bind_each(self, target: ast.expr, iterable: ast.expr) -> None:
        """Bind a loop's target to the elements of `iterable`, through zip and enumerate."""
        kind = self.visit(iterable)
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

    def visit_Name(self, node: ast.Name) -> Kind:  # noqa: PLR0911 - one return per kind of name
        name = node.id
        if name in self.env:
            return self.env[name]
        if name in self.names.foreign:
            return Kind.VALUE  # its import is the violation
        if name in self.names.modules:
            return self.module_value(node, self.names.modules[name])
        if name in self.names.kernels:
            return Kind.KERNEL
        if name in self.names.helpers:
            self.findings.add("function-value", node, f"function {name} used as a value", f"call it: {name}(...)")
            return Kind.VALUE
        allowed = self.profile.host.builtins | self.profile.host.exceptions
        if name in self.names.constants or name in allowed:
            return Kind.VALUE
        known = hasattr(builtins, name) or name.startswith("__")
        rule, what = ("builtin", f"builtin {name}") if known else ("unknown-name", f"{name} is not defined")
        choices = allowed | self.env.keys() | self.names.constants.keys() | self.names.kernels.keys()
        default = (
            "define it, or pass it as an argument" if rule == "unknown-name" else "do without; the wrapper launches"
        )
        advice = f"add `{_import_line(name)}` at the top" if name in self.profile.imports else ""
        hint = advice or self.profile.hints.get(name) or similar(name, choices) or default
        self.findings.add(rule, node, what, hint)
        return Kind.VALUE

    def module_value(self, node: ast.AST, dotted: str) -> Kind:
        if dotted in self.profile.host.values or self.profile.host.functions.get(dotted) == "value":
            return Kind.VALUE
        what = f"module or function {dotted} used as a value"
        self.findings.add("module-value", node, what, "write the full name where it is used, such as torch.empty(...)")
        return Kind.VALUE

    def visit_Attribute(self, node: ast.Attribute) -> Kind:
        dotted = self.names.dotted(node)
        if dotted is not None:
            if dotted not in self.profile.host.values and _root(node) not in self.names.foreign:
                self.refuse(node, dotted)
            return Kind.VALUE
        if (
            node.attr == "__name__"
            and isinstance(node.value, ast.Call)
            and getattr(node.value.func, "id", "") == "type"
        ):
            return self.visit(node.value)  # refused unless an error's text asks for it
        return self.attribute(node)

    def refuse(self, node: ast.AST, dotted: str) -> None:
        if dotted in self.profile.host.functions or dotted in self.profile.host.types:
            self.module_value(node, dotted)
        else:
            self.findings.add(*_at(refused_name(dotted, False, self.profile), node), named=dotted)

    def attribute(self, node: ast.Attribute) -> Kind:
        """`value.name` where value is no module."""
        base = self.visit(node.value)
        allowed = self.profile.host.attributes.get(node.attr)
        if base is Kind.LIMITS and allowed and "limits" in allowed:
            return Kind.VALUE
        only_tensors = base is Kind.TENSOR and allowed is not None and not allowed & {"tensor", "tensors", "value"}
        if not allowed or allowed == frozenset({"limits"}) or base is Kind.KERNEL or only_tensors:
            default = (
                "use only views and metadata (shape, stride, dtype, view, expand, permute, ...); compute in a kernel"
            )
            hint = self.profile.hints.get(node.attr) or default
            self.findings.add("attribute", node, f".{node.attr} is not allowed in host code", hint, f".{node.attr}")
        return of_attribute(node.attr, base, self.profile)

    # -- operators --------------------------------------------------------------------------------------------------

    def operator(self, node: ast.AST, symbol: str, *kinds: Kind) -> None:
        if Kind.TENSOR in kinds:
            what = f"operator {symbol} on a tensor in host code"
            self.findings.add("tensor-operator", node, what, _OPERATOR)

    def truth(self, test: ast.expr) -> None:
        """Visit a condition."""
        if self.visit(test) is Kind.TENSOR:
            self.findings.add("tensor-operator", test, "truth of a tensor in host code", _TRUTH)

    def _asks_alignment(self, node: ast.BinOp) -> bool:
        """`x.data_ptr() % 16`, which tells no more of the address than a kernel's speed depends on."""
        call, by = node.left, node.right
        small = isinstance(by, ast.Constant) and type(by.value) is int and 0 < by.value <= _ALIGNMENT
        asked = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "data_ptr"
        return self.profile.bare and isinstance(node.op, ast.Mod) and small and asked

    def visit_BinOp(self, node: ast.BinOp) -> Kind:
        if self._asks_alignment(node):
            self.visit(node.left.func.value)  # type: ignore[attr-defined]
            return Kind.VALUE
        left, right = self.visit(node.left), self.visit(node.right)
        symbol = type(node.op).__name__
        if isinstance(node.op, ast.MatMult):
            self.operator(node, "@", Kind.TENSOR)
        else:
            self.operator(node, symbol, left, right)
        if Kind.TENSOR in (left, right):
            return Kind.TENSOR
        if isinstance(node.op, ast.Mult):
            return left if left is not Kind.VALUE else right  # a list times a number
        return join(left, right) if Kind.LIST not in (left, right) else Kind.LIST

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Kind:
        if isinstance(node.op, ast.Not):
            self.truth(node.operand)
            return Kind.VALUE
        kind = self.visit(node.operand)
        self.operator(node, type(node.op).__name__, kind)
        return kind

    def visit_Compare(self, node: ast.Compare) -> Kind:
        kinds = [self.visit(node.left), *map(self.visit, node.comparators)]
        if not all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            self.operator(node, type(node.ops[0]).__name__, *kinds)
        return Kind.VALUE

    def visit_BoolOp(self, node: ast.BoolOp) -> Kind:
        for value in node.values:
            self.truth(value)
        return Kind.VALUE

    def visit_IfExp(self, node: ast.IfExp) -> Kind:
        self.truth(node.test)
        outer = self.saved()
        holds, fails = narrowed(node.test, self.names)
        self.env = outer | holds
        body = self.visit(node.body)
        self.env = outer | fails
        orelse = self.visit(node.orelse)
        self.env = outer
        return join(body, orelse)

    def visit_Subscript(self, node: ast.Subscript) -> Kind:
        base = self.visit(node.value)
        self.visit(node.slice)
        if base is Kind.TENSOR and self._basic_index(node.slice):
            return Kind.TENSOR
        if base is Kind.TENSOR:
            what = f"indexing of a tensor in host code: {shown(node)[:60]}"
            hint = "use select(dim, i) or narrow(dim, start, length), or index in the kernel"
            self.findings.add("tensor-indexing", node, what, hint)
            return Kind.TENSOR
        if base is Kind.KERNEL:
            self.findings.add("launch", node, "kernel[grid] without a call", "launch it: kernel[(grid,)](arguments)")
        if base in HOLDS_TENSORS:
            return base if isinstance(node.slice, ast.Slice) else Kind.TENSOR
        return base if base is Kind.LIST and isinstance(node.slice, ast.Slice) else Kind.VALUE

    def _basic_index(self, index: ast.expr) -> bool:
        """Whether an index makes a view, in a profile that allows that: integers, slices, None, `...`; no tensor."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        copies = (ast.Compare, ast.List, ast.ListComp, ast.BoolOp)
        return self.profile.bare and not any(
            isinstance(p, copies) or self.visit(p) in HOLDS_TENSORS | {Kind.LIST} for p in parts
        )

    # -- displays ---------------------------------------------------------------------------------------------------

    def visit_Tuple(self, node: ast.Tuple) -> Kind:
        return of_display([self.visit(e) for e in node.elts], mutable=False)

    def visit_List(self, node: ast.List) -> Kind:
        return of_display([self.visit(e) for e in node.elts], mutable=True)

    def visit_Dict(self, node: ast.Dict) -> Kind:
        for part in (*node.keys, *node.values):
            if part is not None:
                self.visit(part)
        return Kind.LIST

    def visit_Set(self, node: ast.Set) -> Kind:
        for e in node.elts:
            self.visit(e)
        return Kind.LIST

    def comprehension(self, generators: list[ast.comprehension], *elements: ast.expr) -> Kind:
        outer = self.saved()
        self.loop_depth += 1
        for g in generators:
            self.bind_each(g.target, g.iter)
            for test in g.ifs:
                self.truth(test)
        kinds = [self.visit(e) for e in elements]
        self.env = outer
        self.loop_depth -= 1
        return kinds[-1]

    def visit_ListComp(self, node: ast.ListComp) -> Kind:
        return of_display([self.comprehension(node.generators, node.elt)], mutable=True)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Kind:
        return of_display([self.comprehension(node.generators, node.elt)], mutable=False)

    def visit_SetComp(self, node: ast.SetComp) -> Kind:
        self.comprehension(node.generators, node.elt)
        return Kind.LIST

    def visit_DictComp(self, node: ast.DictComp) -> Kind:
        self.comprehension(node.generators, node.key, node.value)
        return Kind.LIST

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Kind:
        for value in node.values:
            if isinstance(value, ast.FormattedValue) and self.visit(value.value) in HOLDS_TENSORS:
                what = "a tensor formatted as text reads its data"
                self.findings.add("tensor-builtin", value, what, "format its shape or dtype")
        return Kind.VALUE

    def visit_Constant(self, node: ast.Constant) -> Kind:
        return Kind.VALUE

    def visit_Slice(self, node: ast.Slice) -> Kind:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.visit(part)
        return Kind.VALUE

    def visit_Starred(self, node: ast.Starred) -> Kind:
        return element(self.visit(node.value))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Kind:
        kind = self.visit(node.value)
        self.bind(node.target, kind)
        return kind


def _at(refusal: tuple[str, str, str], node: ast.AST) -> tuple[str, ast.AST, str, str]:
    rule, what, instead = refusal
    return rule, node, what, instead


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _import_line(name: str) -> str:
    return {"tl": "import triton.language as tl"}.get(name, f"import {name}")
