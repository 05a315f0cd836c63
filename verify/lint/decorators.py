"""Lint rules for decorators: plain `@triton.jit`, and the decorators that a profile allows, with their arguments."""

from __future__ import annotations

import ast

from verify.lint.expressions import ExpressionRules
from verify.lint.names import JITS, is_kernel, shown
from verify.lint.profile import Profile

_PRUNING = "prune_configs_by"  # for triton.autotune
_PRUNES = frozenset({"early_config_prune", "perf_model", "top_k"})


def check_decorators(tree: ast.Module, expressions: ExpressionRules) -> None:
    """Report every decorator on a module-level function that is not allowed, and violations in its arguments."""
    names, profile, findings = expressions.names, expressions.profile, expressions.findings
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        jits, kernel = 0, is_kernel(node, names.modules)
        for decorator in node.decorator_list:
            dotted = names.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
            jits += dotted in JITS
            known = dotted in JITS and dotted.partition(".")[0] in profile.imports
            plain = known and not isinstance(decorator, ast.Call)
            if plain or (isinstance(decorator, ast.Call) and _allowed(decorator, dotted, kernel, profile)):
                _arguments(decorator, dotted, expressions)
                continue
            problem = f"decorator @{shown(decorator)[:60]}"
            default = "decorate kernels with plain @triton.jit, nothing else"
            if isinstance(decorator, ast.Call) and dotted == "triton.jit":
                default = "write plain @triton.jit, without arguments"
            if dotted in profile.decorators:
                default = f"give it only {', '.join(profile.decorators[dotted]) or 'no arguments'}"
            findings.add("decorator", decorator, problem, profile.instead(dotted) or default)
        if jits > 1:
            findings.add("decorator", node, "@triton.jit twice", "write it once")


def _allowed(call: ast.Call, dotted: str, kernel: bool, profile: Profile) -> bool:
    if dotted not in profile.decorators or not set(k.arg for k in call.keywords) <= set(profile.decorators[dotted]):
        return False
    return kernel == (profile.decorators[dotted] != [])


def _arguments(decorator: ast.expr, dotted: str, expressions: ExpressionRules) -> None:
    """Check a decorator's arguments as host code. Heuristics are lambdas over the kernel's arguments."""
    if not isinstance(decorator, ast.Call):
        return
    for keyword in (k for k in decorator.keywords if k.arg == _PRUNING):
        _pruning(keyword.value, expressions)
    for value in (*decorator.args, *(k.value for k in decorator.keywords if k.arg != _PRUNING)):
        if dotted != "triton.heuristics":
            expressions.visit(value)
        elif isinstance(value, ast.Dict):
            for function in value.values:
                expressions.lambda_or_value(function)
        else:
            problem = f"heuristics that are no literal dict: {shown(value)[:60]}"
            expressions.findings.add("decorator", value, problem, 'write {"NAME": lambda args: ...}')


def _pruning(value: ast.expr, expressions: ExpressionRules) -> None:
    """Check how an autotuner leaves out configurations: by functions of this file, which are checked as helpers."""
    items = list(zip(value.keys, value.values, strict=True)) if isinstance(value, ast.Dict) else []
    for key, function in items:
        named = isinstance(function, ast.Name) and function.id in expressions.names.helpers
        number = isinstance(function, ast.Constant)
        if not (isinstance(key, ast.Constant) and key.value in _PRUNES and (named or number)):
            items = []
    if not items:
        problem = f"{_PRUNING}={shown(value)[:60]}"
        hint = 'write {"early_config_prune": function} with a function of this file'
        expressions.findings.add("decorator", value, problem, hint)
