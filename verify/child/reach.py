"""Record the statements of a kernel file that run, and the results of comparisons outside kernels.

Marks are inserted into the program that is executed. Triton's interpreter adds them to kernels when it rewrites
these; all other code gets them when the file is loaded. The compiler gets the unmodified file.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from pathlib import Path
from typing import Any

KERNEL = "kernel"  # role of the judged file
_RAN, _CAME_OUT = "__ran__", "__came_out__"


class Reached:
    """Statements and comparison results that one request reached."""

    def __init__(self) -> None:
        self._lines: set[int] = set()
        self._outcomes: set[tuple[int, int, bool]] = set()

    def clear(self) -> None:
        """Clear the records of the last request."""
        self._lines.clear()
        self._outcomes.clear()

    def encoded(self) -> str:
        """Encode lines and comparison results, such as `3-7,9,3:11=True`."""
        outcomes = (f"{line}:{column}={value}" for line, column, value in sorted(self._outcomes))
        runs = itertools.groupby(enumerate(sorted(self._lines)), lambda pair: pair[1] - pair[0])
        lines = [[line for _, line in run] for _, run in runs]
        return ",".join([*(f"{run[0]}-{run[-1]}" if run[1:] else str(run[0]) for run in lines), *outcomes])

    def ran(self, line: int) -> None:
        """Record that the statement in this line is about to run."""
        self._lines.add(line)

    def came_out(self, line: int, column: int, value: Any) -> Any:
        """Record the result of the comparison at this position, and return it."""
        if type(value) is bool:
            self._outcomes.add((line, column, value))
        return value


reached = Reached()


def marked(tree: Any, outcomes: bool) -> Any:
    """Return the program with a mark before each statement in its functions.

    With `outcomes`, a mark is also added around each comparison.
    """
    return _Marks(outcomes).visit(tree)


def patch_rewriter() -> None:
    """Add marks to kernels when the interpreter rewrites them, and define the mark functions as builtins."""
    from triton.runtime.interpreter import FunctionRewriter

    transform = FunctionRewriter._transform_ast

    def transform_ast(self: Any, source: str) -> Any:
        tree = transform(self, source)
        return marked(tree, outcomes=False) if Path(self.filename).stem == KERNEL else tree

    FunctionRewriter._transform_ast = transform_ast
    setattr(builtins, _RAN, reached.ran)
    setattr(builtins, _CAME_OUT, reached.came_out)


_HOLD_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


class _Marks(ast.NodeTransformer):
    def __init__(self, outcomes: bool) -> None:
        self._outcomes = outcomes
        self._depth = 0  # depth of nested functions

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if self._outcomes:
            super().generic_visit(node)
        else:  # statements cannot be part of an expression, so expressions are skipped
            for child in ast.iter_child_nodes(node):
                if isinstance(child, _HOLD_STATEMENTS):
                    self.visit(child)
        if self._depth:
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list):
                    setattr(node, name, [s for statement in statements for s in _with_mark(statement)])
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        return _call(_CAME_OUT, node, node) if self._outcomes and self._depth else node


def _with_mark(statement: ast.stmt) -> list[ast.stmt]:
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if constant or isinstance(statement, ast.FunctionDef | ast.Global | ast.Nonlocal):
        return [statement]
    return [ast.copy_location(ast.Expr(_call(_RAN, statement)), statement), statement]


def _call(name: str, at: Any, *values: ast.expr) -> ast.Call:
    """Return a call whose nodes all have the position of `at`."""
    position = [
        ast.copy_location(ast.Constant(n), at) for n in ((at.lineno, at.col_offset) if values else (at.lineno,))
    ]
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, [*position, *values], []), at)
