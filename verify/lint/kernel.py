"""Lint rules for `@triton.jit` functions."""

from __future__ import annotations

import ast
import builtins

from verify.lint.names import Findings, Names, check_end, parameters, refused_name, shown, similar
from verify.lint.profile import Profile
from verify.syntax import children, walk

_CONSTEXPR = frozenset({"tl.constexpr", "gl.constexpr"})
_UNROLLED = frozenset({"tl.static_range", "gl.static_range"})
_PRINTS = frozenset({"tl.device_print", "tl.static_print", "print"})


def check_kernels(names: Names, profile: Profile, findings: Findings) -> None:
    """Report all violations in the kernels."""
    for kernel in names.kernels.values():
        for p in parameters(kernel):
            if p.annotation is not None:
                _check_annotation(p.annotation, names, profile, findings)
        _KernelRules(kernel, names, profile, findings).check()


class _KernelRules:
    """Rules for one kernel: its constructs, names, attributes and calls."""

    def __init__(self, node: ast.FunctionDef, names: Names, profile: Profile, findings: Findings) -> None:
        self.node, self.names, self.profile, self.findings = node, names, profile, findings
        self.parameters = {p.arg for p in parameters(node)}
        stored = {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.locals = self.parameters | stored
        self.modules = frozenset(names.modules.values())
        constexpr = [p for p in parameters(node) if p.annotation and names.dotted(p.annotation) in _CONSTEXPR]
        self.callables = {p.arg for p in constexpr}  # parameters that may be functions

    def check(self) -> None:
        for p in parameters(self.node):
            self._bound(p.arg, p)
        for statement in self.node.body:
            self._walk(statement)
        self._prints()

    def _prints(self) -> None:
        """Report debug output inside a loop; one print outside loops is allowed."""
        loops = [n for n in walk(self.node) if isinstance(n, ast.For | ast.While)]
        for call in [n for loop in loops for n in walk(loop) if isinstance(n, ast.Call)]:
            printing = shown(call.func) if isinstance(call.func, ast.Name) else self.names.dotted(call.func)
            if printing in _PRINTS and printing in self.profile.kernel.names | self.profile.kernel.builtins:
                rule = "builtin" if printing == "print" else "name"
                self.findings.add(rule, call, f"{printing} in a loop", "leave it out, or print once, outside loops")

    def _walk(self, node: ast.AST) -> None:
        name = type(node).__name__
        # A nested function is not a kernel.
        known = name in self.profile.kernel.constructs and not isinstance(node, ast.FunctionDef)
        if isinstance(node, ast.stmt | ast.expr) and not known:
            default = "use assignments, if, for, while, calls and return, as Triton compiles them"
            hint = self.profile.constructs.get(name, default)
            self.findings.add("construct", node, f"{name} in a @triton.jit function", hint)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                return
        dotted = self.names.dotted(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._bound(node.id, node)
        elif dotted is not None:
            self._dotted(node, dotted)
            return
        elif isinstance(node, ast.Name):
            self._name(node)
        elif isinstance(node, ast.Attribute):
            self._attribute(node)
        elif isinstance(node, ast.Call):
            self._call(node)
            self._unrolled(node)
        elif isinstance(node, ast.While):
            check_end(node, self.findings)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
            self._targets(node)
        for child in children(node):
            self._walk(child)

    def _dotted(self, node: ast.AST, dotted: str) -> None:
        if dotted in self.profile.kernel.names or self.names.is_foreign(node):
            return
        if dotted in self.modules and isinstance(node, ast.Name):
            problem = f"module {dotted} used as a value"
            self.findings.add("module-value", node, problem, "write the full name where it is used, such as tl.exp(x)")
            return
        base, _, attribute = dotted.rpartition(".")
        if base in self.profile.kernel.names and attribute in self.profile.kernel.attributes:
            return  # tl.float32.primitive_bitwidth
        rule, problem, instead = refused_name(dotted, True, self.profile)
        self.findings.add(rule, node, problem, instead, dotted)

    def _name(self, node: ast.Name) -> None:
        name = node.id
        if name in self.locals or name in self.names.kernels or name in self.profile.kernel.builtins:
            return
        if self.names.constants.get(name):
            return
        if name in self.names.constants:
            hint = f"define it as {name} = tl.constexpr(...), or pass it as a tl.constexpr argument"
            self.findings.add("kernel-global", node, f"a kernel cannot read the global {name}", hint)
        elif name in self.names.helpers:
            hint = "decorate it with @triton.jit if it computes on tl values, or pass its result as an argument"
            self.findings.add("scope", node, f"host function {name} inside a @triton.jit function", hint)
        elif hasattr(builtins, name) or name.startswith("__"):
            hint = self.profile.hints.get(name) or "use tl functions; a kernel's body is compiled, not run by Python"
            self.findings.add("builtin", node, f"builtin {name} inside a @triton.jit function", hint)
        else:
            known = self.locals | self.names.kernels.keys() | {k for k, made in self.names.constants.items() if made}
            hint = similar(name, known) or "define it in the kernel, or pass it as an argument"
            self.findings.add("unknown-name", node, f"{name} is not defined", hint)

    def _bound(self, name: str, at: ast.AST) -> None:
        if self.names.is_module_level(name) or name.startswith("__"):
            self.findings.add("shadowing", at, f"{name!r} is bound again", "choose another name for the local value")

    def _attribute(self, node: ast.Attribute) -> None:
        if node.attr not in self.profile.kernel.attributes:
            hint = self.profile.hints.get(node.attr) or "use tl functions on the value"
            problem = f".{node.attr} is not allowed inside a @triton.jit function"
            self.findings.add("attribute", node, problem, hint, f".{node.attr}")

    def _call(self, node: ast.Call) -> None:
        func = node.func
        named = isinstance(func, ast.Name) and (func.id in self.callables or func.id not in self.locals)
        if not (named or isinstance(func, ast.Attribute)):
            problem = f"call of {shown(func)[:60]} inside a @triton.jit function"
            self.findings.add("call", node, problem, "call tl functions and other @triton.jit functions by name")

    def _unrolled(self, node: ast.Call) -> None:
        """Report an unrolled loop with too many iterations between literal bounds."""
        bounds = [b for b in map(_integer, node.args) if b is not None]
        called = self.names.dotted(node.func)
        if called not in _UNROLLED or not bounds or len(bounds) != len(node.args):
            return
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        count = -((start - stop) // step) if step else 0  # not len(range(...)), which fails beyond 63 bits
        if count > self.profile.limits["unroll"]:
            problem = f"{called} of {count} iterations"
            self.findings.add("unroll", node, problem, "use range or tl.range, which are not unrolled")

    def _targets(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For) -> None:
        if isinstance(node, ast.AnnAssign):
            _check_annotation(node.annotation, self.names, self.profile, self.findings)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for part in walk(target):
                if isinstance(part, ast.Attribute | ast.Subscript):
                    problem = f"assignment to {shown(part)[:60]} inside a @triton.jit function"
                    self.findings.add("assignment", part, problem, "assign to plain names; write memory with tl.store")


def _check_annotation(node: ast.expr, names: Names, profile: Profile, findings: Findings) -> None:
    """Report an annotation other than tl.constexpr or a scalar type; the compiler understands only these."""
    written = node.value if isinstance(node, ast.Constant) else names.dotted(node) or getattr(node, "id", None)
    if written not in profile.kernel.annotations:
        problem = f"annotation {shown(node)[:60]} in a @triton.jit function"
        scalar = "tl.float64" if "tl.float64" in profile.kernel.annotations else "tl.float32"
        hint = (
            profile.instead(str(written)) or f"annotate with tl.constexpr, or a scalar with its type, such as {scalar}"
        )
        findings.add("annotation", node, problem, hint, str(written or ""))


def _integer(node: ast.expr) -> int | None:
    """Return the value of `8` or `-8`, else None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _integer(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
