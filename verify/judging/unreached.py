"""What of a kernel file no case reached: statements, and comparisons with numbers that always came out one way."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator

from verify import syntax
from verify.contract.kernel_file import KernelFile

_MOST = 12  # that are told one by one


def unreached(kernel: KernelFile, reached: Iterable[str]) -> tuple[str, ...]:
    """In a line each. reached: of every case that passed, as `verify.child.reach` tells it.

    Of the author's own text, without blocks; refusals, which are for calls that no case makes, are left out.
    """
    told = {mark for text in reached for part in text.split(",") for mark in _unpacked(part)}
    tree = syntax.parse(kernel.written)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    lines = sorted({s.lineno for f in functions for s in _statements(f.body)})
    missing = [n for n in lines if str(n) not in told]
    found = [_span(several) for several in _runs(lines, missing)]
    for function in functions:
        found += [] if _is_kernel(function) else _one_sided(function, told, set(missing))
    more = [f"and {len(found) - _MOST} more"] if len(found) > _MOST else []
    return (*found[:_MOST], *more)


def _unpacked(part: str) -> list[str]:
    """`3-5` as `3`, `4`, `5`; what is no run of lines as it is."""
    first, dash, last = part.partition("-")
    return [str(n) for n in range(int(first), int(last) + 1)] if dash and first.isdigit() and last.isdigit() else [part]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those that valid calls may run."""
    if any(isinstance(s, ast.Raise) for s in body):
        return
    for statement in body:
        constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not constant and not isinstance(statement, ast.FunctionDef | ast.Global | ast.Nonlocal):
            yield statement
        if not isinstance(statement, ast.FunctionDef):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, name, []))


def _runs(lines: list[int], missing: list[int]) -> Iterator[list[int]]:
    """Missing lines with nothing between them that ran."""
    places = {line: i for i, line in enumerate(lines)}
    for _, group in itertools.groupby(enumerate(missing), lambda pair: places[pair[1]] - pair[0]):
        yield [line for _, line in group]


def _span(lines: list[int]) -> str:
    return f"line {lines[0]} never ran" if len(lines) == 1 else f"lines {lines[0]}-{lines[-1]} never ran"


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def _one_sided(function: ast.FunctionDef, told: set[str], missing: set[int]) -> Iterator[str]:
    refusals = {
        id(inner)
        for node in ast.walk(function)
        if isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in (*node.body, *node.orelse))
        for inner in ast.walk(node.test)
    }
    for node in ast.walk(function):
        if not isinstance(node, ast.Compare) or id(node) in refusals or node.lineno in missing:
            continue
        if not any(
            isinstance(v, ast.Constant) and type(v.value) in (int, float) for v in (node.left, *node.comparators)
        ):
            continue
        seen = [value for value in (True, False) if f"{node.lineno}:{node.col_offset}={value}" in told]
        if len(seen) == 1:
            yield f"line {node.lineno}: {ast.unparse(node)} was always {seen[0]}"
