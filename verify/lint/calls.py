"""Lint of calls in host code: functions, methods, builtins, launches, lambdas."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

from verify import syntax
from verify.lint.expr import ExpressionRules
from verify.lint.kinds import HOLDS_TENSORS, MUTABLE, OF_RESULT, Kind, of_display
from verify.lint.names import ATEN, call_of, operator_of, parameters, shown
from verify.lint.spread import spread

_SORTS = frozenset({"sorted", "min", "max"})
_OFF = frozenset({"requires_grad", "pin_memory"})  # keywords of allocations that may only be switched off
_LONGEST_QUOTED = 200  # characters of a quoted annotation
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


class CallRules(ExpressionRules):
    """Adds calls to the expressions."""

    lambda_depth = 0
    raising = False  # in the message of an error

    @abstractmethod
    def function(self, name: str, kinds: Sequence[Kind]) -> Kind:
        """Check helper `name` for arguments of these kinds; return the kind of its result."""

    @cached_property
    def launch_arguments(self) -> frozenset[str]:
        """Every name that a launch may be given."""
        own = {p.arg for k in self.names.kernels.values() for p in parameters(k)}
        return self.profile.kernel.launch_options | own

    def visit_Call(self, node: ast.Call) -> Kind:
        func = node.func
        dotted = self.names.dotted(func)
        if dotted is not None:
            return self._function_call(node, dotted)
        if isinstance(func, ast.Name):
            return self._name_call(node, func.id)
        if isinstance(func, ast.Subscript):
            return self._launch(node, func)
        if isinstance(func, ast.Attribute):
            return self._method_call(node, func)
        self.visit(func)
        return self._odd_call(node)

    def arguments(self, node: ast.Call) -> list[Kind]:
        """Visit every argument; a lambda may only be the key of sorted, min or max."""
        kinds = [self.visit(a) for a in node.args]
        self._check_keywords(node)
        for keyword in node.keywords:
            is_key = keyword.arg == "key" and isinstance(node.func, ast.Name) and node.func.id in _SORTS
            if is_key and isinstance(keyword.value, ast.Lambda):
                self.plain_lambda(keyword.value)
                kinds.append(Kind.VALUE)
            else:
                kinds.append(self.visit(keyword.value))
        return kinds

    def _check_keywords(self, node: ast.Call) -> None:
        """Functions, methods and builtins take the keywords of the profile; launches and helpers their own."""
        dotted, name = self.names.dotted(node.func), getattr(node.func, "id", "")
        refused = dotted is not None and dotted not in self.profile.host.functions
        own = name in self.names.helpers or name in self.names.kernels or name == "dict"
        if refused or own or isinstance(node.func, ast.Subscript):
            return
        options = self.profile.kernel.launch_options
        config = dotted == "triton.Config"
        for keyword in node.keywords:
            known = options if config else self.profile.host.keywords
            if keyword.arg is not None and keyword.arg not in known and not self._left_off(keyword):
                what = f"argument {keyword.arg}= of {shown(node.func)[:40]}"
                hint = f"only {', '.join(sorted(options))}" if config else "leave it out; the result is a plain tensor"
                self.findings.add("argument", keyword.value, what, hint)
            if keyword.arg == "device" and isinstance(keyword.value, ast.Constant) and keyword.value.value is not None:
                what = f"the device {keyword.value.value!r}"
                self.findings.add("argument", keyword.value, what, "allocate where the input lies: device=self.device")

    def _left_off(self, keyword: ast.keyword) -> bool:
        """`pin_memory=False`, or the argument of that name passed on: as allocating without it."""
        value = keyword.value
        off = isinstance(value, ast.Constant) and not value.value
        passed = isinstance(value, ast.Name) and value.id == keyword.arg
        return self.profile.bare and keyword.arg in _OFF and (off or passed)

    def _function_call(self, node: ast.Call, dotted: str) -> Kind:
        kinds = self.arguments(node)
        kind = self.profile.host.functions.get(dotted)
        if kind is None and self.profile.calls and dotted.startswith(ATEN):
            return self._library_call(node, dotted)
        if kind is None:
            self.visit(node.func) if isinstance(node.func, ast.Attribute) else self.refuse(node, dotted)
            return Kind.TENSOR if dotted.startswith("torch.") else Kind.VALUE
        if dotted == "torch.device" and node.args and isinstance(node.args[0], ast.Constant):
            what = f"the device {node.args[0].value!r}"
            self.findings.add("argument", node, what, "allocate where the input lies: device=self.device")
        if dotted == "torch.tensor" and (
            not node.args or kinds[0] is not Kind.VALUE or isinstance(node.args[0], _DISPLAYS)
        ):
            what = f"{shown(node)[:60]} is not made of one number"
            self.findings.add("argument", node, what, self.profile.instead(dotted))
        if self.lambda_depth and kind in ("tensor", "tensors"):
            self.findings.add("lambda", node, f"{dotted} in a lambda", "allocate in the wrapper's body")
        return OF_RESULT[kind]

    def _library_call(self, node: ast.Call, dotted: str) -> Kind:
        """An operator that the library serves, by its overload's full name."""
        overload, callable_ = operator_of(dotted), self.profile.calls
        if overload not in callable_:
            base = f"aten::{dotted.removeprefix(ATEN).partition('.')[0]}"
            same = sorted(o for o in callable_ if o.partition(".")[0] == base)
            what = f"{dotted} is no overload that this kernel may call"
            hint = f"write {' or '.join(map(call_of, same))}" if same else "compute it in a @triton.jit kernel"
            self.findings.add("library-call", node, what, hint)
        if self.lambda_depth:
            self.findings.add("lambda", node, f"{dotted} in a lambda", "call it in the wrapper's body")
        return Kind.TENSOR

    def _name_call(self, node: ast.Call, name: str) -> Kind:
        if name in self.env:
            self.arguments(node)
            return self._odd_call(node)
        if name == "type" and self.raising and self.profile.bare and len(node.args) == 1 and not node.keywords:
            self.visit(node.args[0])
            return Kind.VALUE
        if name == "isinstance" and len(node.args) == 2:
            self.visit(node.args[0])
            self._types(node.args[1])
            return Kind.VALUE
        kinds = self.arguments(node)
        if name in self.names.kernels:
            what = f"kernel {name} called without a grid"
            self.findings.add("launch", node, what, f"launch it: {name}[(triton.cdiv(n, BLOCK),)](...)")
            return Kind.VALUE
        if name in self.names.helpers:
            return self._helper_call(node, name, kinds)
        self.visit(node.func)  # reports a name that is not allowed
        return self._builtin_call(node, name, kinds)

    def _helper_call(self, node: ast.Call, name: str, kinds: list[Kind]) -> Kind:
        if self.lambda_depth:
            self.findings.add("lambda", node, f"{name} called in a lambda", "compute it before, in the wrapper's body")
        head = self.names.helpers[name].args
        self.findings.work(len(parameters(self.names.helpers[name])))
        positional = [p.arg for p in (*head.posonlyargs, *head.args)]
        bound = {p.arg: Kind.VALUE for p in parameters(self.names.helpers[name])}
        if not any(isinstance(a, ast.Starred) for a in node.args):
            given = kinds[: len(node.args)]
            bound.update(zip(positional, given, strict=False))
            keywords = zip(node.keywords, kinds[len(node.args) :], strict=True)
            bound.update({k.arg: kind for k, kind in keywords if k.arg in bound and k.arg is not None})
            if head.vararg is not None:
                bound[head.vararg.arg] = of_display(given[len(positional) :], mutable=False)
        return self.function(name, list(bound.values()))

    def _builtin_call(self, node: ast.Call, name: str, kinds: list[Kind]) -> Kind:
        host = self.profile.host
        if name in host.builtins and name not in host.builtins_on_tensors and HOLDS_TENSORS & set(kinds):
            what = f"builtin {name} on a tensor in host code"
            self.findings.add("tensor-builtin", node, what, "compute it in a @triton.jit kernel")
        if name == "int" and Kind.TENSOR in kinds:
            self.read_back(node)
        holds = any(k in HOLDS_TENSORS for k in kinds)
        if name in ("list", "sorted", "dict", "set"):
            return Kind.TENSOR_LIST if holds else Kind.LIST
        return Kind.TENSORS if holds and name in ("tuple", "reversed") else Kind.VALUE

    def _method_call(self, node: ast.Call, func: ast.Attribute) -> Kind:
        if self.profile.host.attributes.get(func.attr) == frozenset({"field"}):
            hint = self.profile.instead(func.attr)
            self.findings.add("attribute", node, f".{func.attr}(...) is not allowed in host code", hint)
        kind = self.attribute(func)
        if func.attr == "item":
            self.read_back(node)
        if self.lambda_depth and kind in HOLDS_TENSORS:
            self.findings.add("lambda", node, f".{func.attr}(...) in a lambda", "compute numbers from meta alone")
        kinds = self.arguments(node)
        if func.attr in ("append", "insert", "extend") and isinstance(func.value, ast.Name):
            holder = func.value.id
            if self.env.get(holder) is Kind.LIST and kinds and kinds[-1] in HOLDS_TENSORS:
                self.env[holder] = Kind.TENSOR_LIST
        return kind

    def read_back(self, node: ast.Call) -> None:
        """A size may be read from the device, but no values one by one."""
        if self.loop_depth:
            what = f"{shown(node)[:60]} in a loop reads values one by one"
            self.findings.add("readback", node, what, "load them in a kernel; read one number a call, outside loops")

    def _odd_call(self, node: ast.Call) -> Kind:
        what = f"call of {shown(node.func)[:60]}, which is no named function"
        self.findings.add(
            "call", node, what, "call functions by their own names; launch kernels with kernel[grid](...)"
        )
        return Kind.VALUE

    def _types(self, node: ast.expr) -> None:
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            if self.names.dotted(part) not in self.profile.host.types:
                self.visit(part)

    # -- launches ---------------------------------------------------------------------------------------------------

    def _launch(self, node: ast.Call, func: ast.Subscript) -> Kind:
        base = func.value
        named = isinstance(base, ast.Name) and (base.id in self.env or base.id in self.names.kernels)
        if self.visit(base) in HOLDS_TENSORS or not (named or isinstance(base, ast.Subscript)):
            self.arguments(node)
            return self._odd_call(node)
        if self.lambda_depth:
            self.findings.add("lambda", node, "a launch in a lambda", "launch in the wrapper's body")
        if isinstance(func.slice, ast.Lambda):
            self.plain_lambda(func.slice)
        else:
            self.visit(func.slice)
        known = self.launch_arguments
        unpacked = {
            id(k): spread(k.value, self.names, self.findings.work)
            for k in node.keywords
            if k.arg is None and self.profile.bare
        }
        given = [(k.arg, k.value) for k in node.keywords if k.arg is not None]
        for name, value in [*given, *(pair for pairs in unpacked.values() for pair in pairs or [])]:
            if name not in known:
                what = f"{name}= in a launch is no parameter of a kernel here"
                options = ", ".join(sorted(self.profile.kernel.launch_options))
                hint = f"pass the kernel's parameters, and of options only {options}"
                self.findings.add("launch-argument", value, what, hint)
        arguments = list(zip([*node.args, *node.keywords], self.arguments(node), strict=True))
        arguments = [(a, kind) for a, kind in arguments if unpacked.get(id(a)) is None]
        values = [value for pairs in unpacked.values() for _, value in pairs or []]
        for argument, kind in [*arguments, *((value, self._display_kind(value)) for value in values)]:
            if kind in MUTABLE and not isinstance(argument, ast.Starred):
                what = f"a list or dict as a kernel argument: {shown(argument)[:60]}"
                self.findings.add("launch-argument", node, what, "pass tensors, numbers or a tuple of them")
        return Kind.VALUE

    def _display_kind(self, node: ast.expr) -> Kind:
        """The kind of a value in an unpacked dict, which may come from another scope: what is plain to see."""
        if isinstance(node, _DISPLAYS) and not isinstance(node, ast.Tuple):
            return Kind.LIST
        return self.env.get(node.id, Kind.VALUE) if isinstance(node, ast.Name) else Kind.VALUE

    # -- lambdas ----------------------------------------------------------------------------------------------------

    def visit_Lambda(self, node: ast.Lambda) -> Kind:
        what = "lambda outside a grid or a sort key"
        self.findings.add("lambda", node, what, "write a function at module level, or the expression itself")
        return Kind.VALUE

    def plain_lambda(self, node: ast.Lambda) -> None:
        """A grid or sort key: arithmetic on numbers, names and metadata."""
        outer = self.saved()
        for arg in parameters(node):
            self.bind_name(arg.arg, Kind.VALUE, arg)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit_Lambda(node)
        self.lambda_depth += 1
        self.visit(node.body)
        self.lambda_depth -= 1
        self.env = outer

    # -- annotations ------------------------------------------------------------------------------------------------

    def annotation(self, node: ast.expr) -> None:
        """Annotations are code: only the plain names of types."""
        if not self._plain_type(node):
            what = f"annotation {shown(node)[:60]}"
            self.findings.add("annotation", node, what, "leave it out, or write torch.Tensor, int, float, bool or str")

    def _plain_type(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._plain_type(node.left) and self._plain_type(node.right)
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return all(map(self._plain_type, [node.value, *parts]))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self.profile.bare:
            return self._quoted_type(node.value)
        if isinstance(node, ast.Constant):
            return node.value is None or node.value is ...
        if isinstance(node, ast.Name) and node.id in ("int", "float", "bool", "str", "list", "tuple"):
            return True
        dotted = self.names.dotted(node) or ""
        return dotted in self.profile.host.types or (self.profile.bare and dotted.startswith("typing."))

    def _quoted_type(self, text: str) -> bool:
        try:
            return len(text) <= _LONGEST_QUOTED and self._plain_type(syntax.parse_expression(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
