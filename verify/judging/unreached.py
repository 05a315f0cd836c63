"""Find the parts of a kernel file that no case reached.

These are statements, and comparisons with numbers that always had the same result.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator

from verify import syntax
from verify.contract.kernel_file import KernelFile

_MOST = 12  # entries that are listed individually


def unreached(kernel: KernelFile, reached: Iterable[str]) -> tuple[str, ...]:
    """Return one line for each unreached part.

    Only the author's own text is considered, without blocks. Branches that raise are excluded, because valid
    calls do not reach them.

    Args:
        kernel: The kernel file.
        reached: Records of all passed cases, as encoded by `verify.child.reach`.
    """
    marks = {mark for text in reached for part in text.split(",") for mark in _unpacked(part)}
    tree = syntax.parse(kernel.written)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    lines = sorted({s.lineno for f in functions for s in _statements(f.body)})
    missing = [n for n in lines if str(n) not in marks]
    descriptions = [_span(run) for run in _runs(lines, missing)]
    for function in functions:
        descriptions += [] if _is_kernel(function) else _one_sided(function, marks, set(missing))
    more = [f"and {len(descriptions) - _MOST} more"] if len(descriptions) > _MOST else []
    return (*descriptions[:_MOST], *more)


def _unpacked(part: str) -> list[str]:
    """Expand `3-5` to `3`, `4`, `5`; return other parts unchanged."""
    first, dash, last = part.partition("-")
    return [str(n) for n in range(int(first), int(last) + 1)] if dash and first.isdigit() and last.isdigit() else [part]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that valid calls may run."""
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
    """Yield groups of missing lines with no executed line between them."""
    positions = {line: i for i, line in enumerate(lines)}
    for _, group in itertools.groupby(enumerate(missing), lambda pair: positions[pair[1]] - pair[0]):
        yield [line for _, line in group]


def _span(lines: list[int]) -> str:
    return f"line {lines[0]} never ran" if len(lines) == 1 else f"lines {lines[0]}-{lines[-1]} never ran"


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def _one_sided(function: ast.FunctionDef, marks: set[str], missing: set[int]) -> Iterator[str]:
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
        results = [value for value in (True, False) if f"{node.lineno}:{node.col_offset}={value}" in marks]
        if len(results) == 1:
            yield f"line {node.lineno}: {ast.unparse(node)} was always {results[0]}"
