"""Lint rules for the names, attributes and types that host code refers to."""

from __future__ import annotations

import ast
import builtins

from verify import syntax
from verify.lint.kinds import Kind, of_attribute
from verify.lint.names import refused_name, shown, similar
from verify.lint.scope import Scope

_TYPES = frozenset({"int", "float", "bool", "str", "list", "tuple"})
_LONGEST_QUOTED = 200  # characters in a quoted annotation
_VIEWS = "use only views and metadata (shape, stride, dtype, view, expand, permute, ...); compute in a kernel"


def check_name(node: ast.Name, scope: Scope) -> Kind:
    """Check a name, and return its kind."""
    name, names, host = node.id, scope.names, scope.profile.host
    if name in scope.env:
        return scope.env[name]
    if name in names.modules:
        if name not in names.foreign:  # a foreign module is reported at its import
            check_module_value(node, names.modules[name], scope)
    elif name in names.kernels:
        return Kind.KERNEL
    elif name in names.helpers:
        scope.findings.add("function-value", node, f"function {name} used as a value", f"call it: {name}(...)")
    elif name not in names.constants and name not in host.builtins | host.exceptions:
        _unknown(node, scope)
    return Kind.VALUE


def _unknown(node: ast.Name, scope: Scope) -> None:
    name, names, profile = node.id, scope.names, scope.profile
    if hasattr(builtins, name) or name.startswith("__"):
        rule, problem, default = "builtin", f"builtin {name}", "do without; the wrapper launches"
    else:
        rule, problem, default = "unknown-name", f"{name} is not defined", "define it, or pass it as an argument"
    choices = profile.host.builtins | profile.host.exceptions | scope.env.keys() | names.constants.keys()
    advice = f"add `{_import_line(name)}` at the top" if name in profile.usual_imports else ""
    hint = advice or profile.hints.get(name) or similar(name, choices | names.kernels.keys()) or default
    scope.findings.add(rule, node, problem, hint)


def _import_line(name: str) -> str:
    return {"tl": "import triton.language as tl"}.get(name, f"import {name}")


def check_module_value(node: ast.AST, dotted: str, scope: Scope) -> None:
    """Report a module or function that is used as a value."""
    host = scope.profile.host
    if dotted not in host.values and host.functions.get(dotted) != "value":
        problem = f"module or function {dotted} used as a value"
        hint = "write the full name where it is used, such as torch.empty(...)"
        scope.findings.add("module-value", node, problem, hint)


def refuse(node: ast.AST, dotted: str, scope: Scope) -> None:
    """Report a module's name that is not allowed here."""
    host = scope.profile.host
    if dotted in host.functions or dotted in host.types:
        check_module_value(node, dotted, scope)
    else:
        rule, problem, instead = refused_name(dotted, False, scope.profile)
        scope.findings.add(rule, node, problem, instead, dotted)


def check_attribute(node: ast.Attribute, base: Kind, scope: Scope) -> Kind:
    """Check `value.name` for a value with kind `base`, and return the attribute's or the call result's kind."""
    profile = scope.profile
    allowed = profile.host.attributes.get(node.attr, frozenset())
    of_limits = base is Kind.LIMITS and "limits" in allowed
    of_others = base is Kind.TENSOR and not allowed & {"tensor", "tensors", "value"}
    if not of_limits and (allowed <= {"limits"} or base is Kind.KERNEL or of_others):
        problem = f".{node.attr} is not allowed in host code"
        scope.findings.add("attribute", node, problem, profile.hints.get(node.attr) or _VIEWS, f".{node.attr}")
    return of_attribute(node.attr, base, profile)


def check_annotation(node: ast.expr | None, scope: Scope) -> None:
    """Report an annotation other than a plain type name, because annotations are executed."""
    if node is not None and not _is_type(node, scope):
        hint = "leave it out, or write torch.Tensor, int, float, bool or str"
        scope.findings.add("annotation", node, f"annotation {shown(node)[:60]}", hint)


def _is_type(node: ast.expr, scope: Scope) -> bool:
    bare = scope.profile.bare
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left, scope) and _is_type(node.right, scope)
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return all(_is_type(part, scope) for part in [node.value, *parts])
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and bare:
        return _is_quoted_type(node.value, scope)
    if isinstance(node, ast.Constant):
        return node.value is None or node.value is ...
    if isinstance(node, ast.Name) and node.id in _TYPES:
        return True
    dotted = scope.names.dotted(node) or ""
    return dotted in scope.profile.host.types or (bare and dotted.startswith("typing."))


def _is_quoted_type(text: str, scope: Scope) -> bool:
    try:
        return len(text) <= _LONGEST_QUOTED and _is_type(syntax.parse_expression(text), scope)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
