"""Lint rules for calls in host code: functions, methods, builtins, helpers, kernels, and their arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from verify.lint.kinds import DISPLAYS, HOLDS_TENSORS, MUTABLE, OF_RESULT, Kind, of_display
from verify.lint.names import ATEN, call_of, operator_of, parameters, shown
from verify.lint.references import check_attribute, refuse
from verify.lint.scope import Scope
from verify.lint.spread import Pairs, spread
from verify.lint.texts import plain_fields

if TYPE_CHECKING:
    from verify.lint.expressions import ExpressionRules

Helper: TypeAlias = Callable[[str, list[Kind]], Kind]
_HOLDERS = frozenset({"list", "tuple", "dict", "set", "zip", "enumerate", "reversed", "isinstance"})
_ADDS = frozenset({"append", "insert", "extend", "update"})
_TEXTS = frozenset({"format", "join", "replace"})
# Expressions that may evaluate to a dtype.
_DTYPES = (ast.Name, ast.Attribute, ast.IfExp, ast.BoolOp, ast.Call, ast.Subscript)
_SORTS = frozenset({"sorted", "min", "max"})
_OFF = frozenset({"requires_grad", "pin_memory"})  # allocation keywords that may only be switched off


class ArgumentRules:
    """Rules for the arguments of calls and launches. `of_kernels` holds all kernels' parameter names."""

    def __init__(self, scope: Scope, expressions: ExpressionRules) -> None:
        self.scope, self.names, self.profile, self.findings = scope, scope.names, scope.profile, scope.findings
        self.expressions = expressions
        self.of_kernels = {p.arg for k in self.names.kernels.values() for p in parameters(k)}

    def kinds(self, node: ast.Call) -> list[Kind]:
        """Visit every argument. A lambda is allowed only as the key for sorted, min or max."""
        kinds = [self.expressions.visit(a) for a in node.args]
        self._check_keywords(node)
        sorts = isinstance(node.func, ast.Name) and node.func.id in _SORTS
        for keyword in node.keywords:
            visit = self.expressions.lambda_or_value if sorts and keyword.arg == "key" else self.expressions.visit
            kinds.append(visit(keyword.value))
        return kinds

    def _check_keywords(self, node: ast.Call) -> None:
        """Check the keywords in a call.

        Functions, methods and builtins take those in the profile; launches and helpers take their own.
        """
        dotted, name = self.names.dotted(node.func), getattr(node.func, "id", "")
        refused = dotted is not None and dotted not in self.profile.host.functions
        has_own_keywords = name in self.names.helpers or name in self.names.kernels or name == "dict"
        has_own_keywords |= getattr(node.func, "attr", "") == "format"
        if refused or has_own_keywords or isinstance(node.func, ast.Subscript):
            return
        options = self.profile.kernel.launch_options
        config = dotted == "triton.Config"
        for keyword in node.keywords:
            known = options if config else self.profile.host.keywords
            if keyword.arg is not None and keyword.arg not in known and not self._left_off(keyword):
                problem = f"argument {keyword.arg}= of {shown(node.func)[:40]}"
                hint = f"only {', '.join(sorted(options))}" if config else "leave it out; the result is a plain tensor"
                self.findings.add("argument", keyword.value, problem, hint)
            if keyword.arg == "device" and isinstance(keyword.value, ast.Constant) and keyword.value.value is not None:
                problem = f"the device {keyword.value.value!r}"
                self.findings.add(
                    "argument", keyword.value, problem, "allocate where the input lies: device=self.device"
                )

    def _left_off(self, keyword: ast.keyword) -> bool:
        """Return True for `pin_memory=False`, or for a parameter with that name passed on.

        Both allocate as if the keyword were absent.
        """
        value = keyword.value
        off = isinstance(value, ast.Constant) and not value.value
        passed = isinstance(value, ast.Name) and value.id == keyword.arg
        return self.profile.bare and keyword.arg in _OFF and (off or passed)

    def check_launch(self, node: ast.Call) -> None:
        """Check a launch: it takes kernel parameters and options, also through `**value`, and no list or dict."""
        unpacked = self._unpacked(node)
        passed_on = list(chain.from_iterable(unpacked.values()))
        options = self.profile.kernel.launch_options
        for name, value in [*((k.arg, k.value) for k in node.keywords if k.arg is not None), *passed_on]:
            if name not in options and name not in self.of_kernels:
                problem = f"{name}= in a launch is no parameter of a kernel here"
                hint = f"pass the kernel's parameters, and of options only {', '.join(sorted(options))}"
                self.findings.add("launch-argument", value, problem, hint)
        written = zip([*node.args, *node.keywords], self.kinds(node), strict=True)
        arguments = [(argument, kind) for argument, kind in written if argument not in unpacked]
        for argument, kind in [*arguments, *((value, self._plain_kind(value)) for _, value in passed_on)]:
            self.scope.handed_on(argument, *({kind} & {Kind.DEVICE}))
            if kind in MUTABLE and not isinstance(argument, ast.Starred):
                problem = f"a list or dict as a kernel argument: {shown(argument)[:60]}"
                self.findings.add("launch-argument", node, problem, "pass tensors, numbers or a tuple of them")

    def _unpacked(self, node: ast.Call) -> dict[ast.AST, Pairs]:
        """Return the items that each `**value` passes, if they can be determined."""
        values = [k for k in node.keywords if k.arg is None and self.profile.bare]
        unpacked = [(k, spread(k.value, self.names, self.findings.work)) for k in values]
        return {k: pairs for k, pairs in unpacked if pairs is not None}

    def _plain_kind(self, node: ast.expr) -> Kind:
        """Return the kind of a value in an unpacked dict.

        Only its syntax and the local names are used, because the value may come from another scope.
        """
        if isinstance(node, DISPLAYS) and not isinstance(node, ast.Tuple):
            return Kind.LIST
        return self.scope.env.get(node.id, Kind.VALUE) if isinstance(node, ast.Name) else Kind.VALUE


class CallRules:
    """Rules for calls.

    `helper` checks a helper function for arguments with given kinds, and returns its result's kind.
    """

    def __init__(self, scope: Scope, expressions: ExpressionRules, helper: Helper) -> None:
        self.scope, self.names, self.profile, self.findings = scope, scope.names, scope.profile, scope.findings
        self.expressions, self.helper = expressions, helper
        self.arguments = ArgumentRules(scope, expressions)

    def kind(self, node: ast.Call) -> Kind:
        """Check a call and return the kind of its result."""
        func = node.func
        dotted = self.names.dotted(func)
        if dotted is not None:
            return self._function(node, dotted)
        if isinstance(func, ast.Name):
            return self._name(node, func)
        if isinstance(func, ast.Subscript):
            return self._launch(node, func)
        if isinstance(func, ast.Attribute):
            return self._method(node, func)
        self.expressions.visit(func)
        return self._odd(node)

    def _odd(self, node: ast.Call) -> Kind:
        problem = f"call of {shown(node.func)[:60]}, which is no named function"
        hint = "call functions by their own names; launch kernels with kernel[grid](...)"
        self.findings.add("call", node, problem, hint)
        return Kind.VALUE

    def _function(self, node: ast.Call, dotted: str) -> Kind:
        kinds = self.arguments.kinds(node)
        kind = self.profile.host.functions.get(dotted)
        if kind is None and self.profile.calls and dotted.startswith(ATEN):
            return self._library(node, dotted)
        if kind is None:
            if isinstance(node.func, ast.Attribute):
                self.expressions.visit(node.func)
            else:
                refuse(node, dotted, self.scope)
            return Kind.TENSOR if dotted.startswith("torch.") else Kind.VALUE
        if dotted == "torch.device" and node.args and isinstance(node.args[0], ast.Constant):
            problem = f"the device {node.args[0].value!r}"
            self.findings.add("argument", node, problem, "allocate where the input lies: device=self.device")
        first = kinds[0] if node.args else Kind.TENSOR
        display = node.args and isinstance(node.args[0], DISPLAYS)
        numbers = first in (Kind.VALUE, Kind.LIST) if self.profile.bare else first is Kind.VALUE and not display
        if dotted == "torch.tensor" and not numbers:
            problem = f"{shown(node)[:60]} is not made of {'numbers' if self.profile.bare else 'one number'}"
            self.findings.add("argument", node, problem, self.profile.instead(dotted))
        if kind in ("tensor", "tensors"):
            self.scope.not_in_lambda(node, dotted, "allocate in the wrapper's body")
        if kind == "value" and Kind.DEVICE in kinds:
            return Kind.DEVICE
        return OF_RESULT[kind]

    def _library(self, node: ast.Call, dotted: str) -> Kind:
        """Check a call to an operator that the library serves, by its overload's full name."""
        overload, callable_ = operator_of(dotted), self.profile.calls
        if overload not in callable_:
            base = f"aten::{dotted.removeprefix(ATEN).partition('.')[0]}"
            same = sorted(o for o in callable_ if o.partition(".")[0] == base)
            problem = f"{dotted} is no overload that this kernel may call"
            hint = f"write {' or '.join(map(call_of, same))}" if same else "compute it in a @triton.jit kernel"
            self.findings.add("library-call", node, problem, hint)
        self.scope.not_in_lambda(node, dotted, "call it in the wrapper's body")
        return Kind.TENSOR

    def _name(self, node: ast.Call, func: ast.Name) -> Kind:
        name = func.id
        if name in self.scope.env:
            self.arguments.kinds(node)
            return self._odd(node)
        if name == "type" and self.scope.raising and self.profile.bare and len(node.args) == 1 and not node.keywords:
            self.expressions.visit(node.args[0])
            return Kind.VALUE
        if name == "isinstance" and len(node.args) == 2:
            self.expressions.visit(node.args[0])
            self._types(node.args[1])
            return Kind.VALUE
        kinds = self.arguments.kinds(node)
        if name in self.names.kernels:
            problem = f"kernel {name} called without a grid"
            self.findings.add("launch", node, problem, f"launch it: {name}[(triton.cdiv(n, BLOCK),)](...)")
            return Kind.VALUE
        if name in self.names.helpers:
            return self._helper(node, name, kinds)
        self.expressions.visit(func)  # reports a name that is not allowed
        return self._builtin(node, name, kinds)

    def _types(self, node: ast.expr) -> None:
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            if self.names.dotted(part) not in self.profile.host.types:
                self.expressions.visit(part)

    def _helper(self, node: ast.Call, name: str, kinds: list[Kind]) -> Kind:
        self.scope.not_in_lambda(node, f"{name} called", "compute it before, in the wrapper's body")
        head = self.names.helpers[name].args
        every = parameters(self.names.helpers[name])
        self.findings.work(len(every))
        positional = [p.arg for p in (*head.posonlyargs, *head.args)]
        bound = {p.arg: Kind.VALUE for p in every}
        if not any(isinstance(a, ast.Starred) for a in node.args):
            positional_kinds = kinds[: len(node.args)]
            bound.update(zip(positional, positional_kinds, strict=False))
            keywords = zip(node.keywords, kinds[len(node.args) :], strict=True)
            bound.update({k.arg: kind for k, kind in keywords if k.arg in bound and k.arg is not None})
            if head.vararg is not None:
                bound[head.vararg.arg] = of_display(positional_kinds[len(positional) :], mutable=False)
        return self.helper(name, list(bound.values()))

    def _builtin(self, node: ast.Call, name: str, kinds: list[Kind]) -> Kind:
        host, holds = self.profile.host, bool(HOLDS_TENSORS & set(kinds))
        if name not in _HOLDERS:
            self.scope.handed_on(node, *kinds)
        if name == "hasattr":
            self._asked_for(node)
        if Kind.DEVICE in kinds and name != "isinstance":
            return Kind.DEVICE
        if name in host.builtins and name not in host.builtins_on_tensors and holds:
            problem = f"builtin {name} on a tensor in host code"
            self.findings.add("tensor-builtin", node, problem, "compute it in a @triton.jit kernel")
        if name == "int" and Kind.TENSOR in kinds:
            self._read_back(node)
        if name in ("list", "sorted", "dict", "set"):
            return Kind.TENSOR_LIST if holds else Kind.LIST
        return Kind.TENSORS if holds and name in ("tuple", "reversed") else Kind.VALUE

    def _method(self, node: ast.Call, func: ast.Attribute) -> Kind:
        if self.profile.host.attributes.get(func.attr) == frozenset({"field"}):
            hint = self.profile.instead(func.attr)
            self.findings.add("attribute", node, f".{func.attr}(...) is not allowed in host code", hint)
        kind = check_attribute(func, self.expressions.visit(func.value), self.scope)
        if func.attr == "item":
            self._read_back(node)
        if func.attr == "to" and not self._to_dtype(node):
            hint = self.profile.instead("to")
            self.findings.add("argument", node, f"{shown(node)[:60]} is no conversion to one dtype", hint)
        if func.attr == "format" and not plain_fields(func.value):
            problem = f"{shown(node)[:60]} may walk from a value to any module"
            hint = 'write an f-string, f"{n}", or a literal text whose fields are plain: "{} {name}".format(...)'
            self.findings.add("introspection", node, problem, hint)
        if kind in HOLDS_TENSORS:
            self.scope.not_in_lambda(node, f".{func.attr}(...)", "compute numbers from meta alone")
        kinds = self.arguments.kinds(node)
        if func.attr in _ADDS and isinstance(func.value, ast.Name):
            holder = func.value.id
            if self.scope.env.get(holder) is Kind.LIST and kinds and kinds[-1] in HOLDS_TENSORS:
                self.scope.env[holder] = Kind.TENSOR_LIST
            elif Kind.DEVICE in kinds:
                self.scope.env[holder] = Kind.DEVICE
        elif func.attr != "to":
            argument_kinds = set(kinds[: len(node.args)])
            self.scope.handed_on(node, *(argument_kinds if func.attr in _TEXTS else argument_kinds & {Kind.DEVICE}))
        return kind

    def _to_dtype(self, node: ast.Call) -> bool:
        """Return True if the only argument to `x.to(...)` may be a dtype; a string would be a device."""
        arguments = [*node.args, *(k.value for k in node.keywords if k.arg in ("dtype", None))]
        return (
            len(arguments) == 1
            and isinstance(arguments[0], _DTYPES)
            and self.expressions.visit(arguments[0]) is Kind.VALUE
        )

    def _asked_for(self, node: ast.Call) -> None:
        """Allow `hasattr(x, "shape")` only for attributes that host code may use."""
        name = node.args[1] if len(node.args) > 1 else None
        if not (isinstance(name, ast.Constant) and name.value in self.profile.host.attributes):
            hint = "ask with isinstance(x, torch.Tensor), or for None"
            self.findings.add("introspection", node, f"{shown(node)[:60]} asks what a value is made of", hint)

    def _read_back(self, node: ast.Call) -> None:
        """Report values read one by one in a loop; a single size may be read from the device."""
        if self.scope.loops:
            problem = f"{shown(node)[:60]} in a loop reads values one by one"
            self.findings.add("readback", node, problem, "load them in a kernel; read one number a call, outside loops")

    def _launch(self, node: ast.Call, func: ast.Subscript) -> Kind:
        base = func.value
        named = isinstance(base, ast.Name) and (base.id in self.scope.env or base.id in self.names.kernels)
        if self.expressions.visit(base) in HOLDS_TENSORS or not (named or isinstance(base, ast.Subscript)):
            self.arguments.kinds(node)
            return self._odd(node)
        self.scope.not_in_lambda(node, "a launch", "launch in the wrapper's body")
        self.scope.handed_on(func.slice, self.expressions.lambda_or_value(func.slice))
        self.arguments.check_launch(node)
        return Kind.VALUE
