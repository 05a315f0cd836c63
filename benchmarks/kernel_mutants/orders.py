"""Make the changes of the class `orders`: statements, branches, arguments, loop bounds and directions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.kernel_mutants.program import Change, Function, Program, called

# Functions whose first two arguments may be swapped without effect, or whose swap is no program.
COMMUTATIVE = frozenset(
    (
        *("minimum", "maximum", "min", "max", "add", "mul", "range", "static_range", "zip", "getattr", "len", "stride"),
        *(
            "load",
            "store",
            "arange",
            "full",
            "zeros",
            "where",
            "to",
            "cast",
            "reshape",
            "view",
            "float",
            "sum",
            "reduce",
        ),
        *("broadcast_to", "cumsum", "associative_scan", "empty", "flip", "expand", "split", "convert", "promote_types"),
    )
)
SCANS = frozenset(("cumsum", "cumprod", "associative_scan"))
EFFECTS = frozenset(("load", "store", "debug_barrier"))


def orders(program: Program, function: Function) -> Iterator[Change]:
    """Swap statements, branches or arguments, move a loop bound, or turn a scan around."""
    bound = {n.arg for n in ast.walk(function.node.args) if isinstance(n, ast.arg)}
    for node in program.nodes(function):
        bodies = [getattr(node, name, None) for name in ("body", "orelse")]
        for body in bodies if isinstance(node, ast.For | ast.If | ast.While) else ():
            yield from _swapped_statements(program, body or [], isinstance(node, ast.For | ast.While), bound)
        if isinstance(node, ast.IfExp):
            texts = [program.operand(part) for part in (node.orelse, node.test, node.body)]
            yield _change(program, node, "({} if {} else {})".format(*texts))
        elif isinstance(node, ast.Subscript):
            yield from _turned(program, node)
        elif isinstance(node, ast.Call):
            yield from _of_call(program, node)
    yield from _swapped_statements(program, function.node.body, False, bound)


def _of_call(program: Program, node: ast.Call) -> Iterator[Change]:
    name, arguments = called(node), node.args
    if name == "where" and len(arguments) == 3:
        yield _swapped(program, arguments[1], arguments[2])
    elif name in ("range", "static_range") and arguments:
        yield from _moved_bound(program, arguments)
    elif name in SCANS:
        reverse = [k for k in node.keywords if k.arg == "reverse"]
        if not reverse:
            yield _change(program, node, f"{program.source(node)[:-1].rstrip().rstrip(',')}, reverse=True)")
    elif len(arguments) > 1 and name not in COMMUTATIVE and not name.startswith("atomic_"):
        one, other = arguments[:2]
        if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
            yield _swapped(program, one, other)


def _moved_bound(program: Program, arguments: list[ast.expr]) -> Iterator[Change]:
    """End a loop one step early, and begin it one step late."""
    step = program.source(arguments[2]) if len(arguments) > 2 else "1"
    last = arguments[min(1, len(arguments) - 1)]
    yield _change(program, last, f"{program.source(last)} - ({step})")
    if len(arguments) > 1:
        yield _change(program, arguments[0], f"{program.source(arguments[0])} + ({step})")


def _turned(program: Program, node: ast.Subscript) -> Iterator[Change]:
    """Replace `x[:, None]` by `x[None, :]`, and the other way round."""
    text = program.source(node.slice)
    new = {":, None": "None, :", "None, :": ":, None"}.get(text)
    if new is not None:
        yield _change(program, node.slice, new)


def _swapped_statements(program: Program, body: list[ast.stmt], is_loop: bool, bound: set[str]) -> Iterator[Change]:
    """Swap two adjacent statements if one depends on the other, and both orders are programs."""
    known = set(bound)
    if is_loop:
        known |= {name for statement in body for name in _written(statement)}
    for one, other in pairwise(body):
        if _is_simple(one) and _is_simple(other):
            shared = (_written(one) & _read(other)) | (_written(other) & _read(one)) | (_written(one) & _written(other))
            effects = _has_effect(one) and _has_effect(other)
            if (shared and shared <= known) or effects and not shared:
                yield _swapped(program, one, other)
        known |= _written(one)


def _is_simple(node: ast.stmt) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and not is_docstring


def _written(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _read(node: ast.AST) -> set[str]:
    augmented = _written(node) if isinstance(node, ast.AugAssign) else set()
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} | augmented


def _has_effect(node: ast.AST) -> bool:
    """Return True if a statement accesses memory; of two loads, the order does not matter."""
    names = {called(n) for n in ast.walk(node)}
    return bool(names & (EFFECTS - {"load"})) or any(name.startswith("atomic_") for name in names)


def _swapped(program: Program, one: ast.expr | ast.stmt, other: ast.expr | ast.stmt) -> Change:
    (start, middle), (between, end) = program.span(one), program.span(other)
    text = program.text
    return Change("orders", start, end, text[between:end] + text[middle:between] + text[start:middle])


def _change(program: Program, node: ast.expr, text: str) -> Change:
    return Change("orders", *program.span(node), text)
