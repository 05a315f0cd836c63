"""Make the changes of one program: operators, constants, masks, dtypes, barriers, strides and orders.

Each class is a generator function from a program and one of its functions to changes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from benchmarks.kernel_mutants.orders import orders
from benchmarks.kernel_mutants.program import Change, Function, Program, called

LITTLE = 1e-3  # relative change of a float constant
LARGE = "3.0e38"  # finite float32 in place of an infinity
BINARY: Mapping[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",),
    ast.Sub: ("+",),
    ast.Mult: ("//", "/"),
    ast.Div: ("*",),
    ast.FloorDiv: ("*",),
    ast.Mod: ("//",),
    ast.LShift: (">>",),
    ast.RShift: ("<<",),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&",),
    ast.BitXor: ("|",),
}
COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",  # codespell:ignore notin
}
NAMES = {"minimum": "maximum", "min": "max", "smaller_of": "larger_of", "any": "all", "floor": "ceil"}
NAMES |= {new: old for old, new in NAMES.items()}
DTYPES = {
    "float64": "float32",
    "float32": "float16",
    "int64": "int32",
    "uint64": "uint32",
    "uint32": "int32",
    "int32": "int16",
}
CASTS = frozenset(("cast", "convert"))  # cast(value, dtype)
MEMORY = frozenset(("load", "store"))
COMBINED = {
    "atomic_add": "{old} + {new}",
    "atomic_max": "tl.maximum({old}, {new})",
    "atomic_min": "tl.minimum({old}, {new})",
    "atomic_and": "{old} & {new}",
    "atomic_or": "{old} | {new}",
    "atomic_xor": "{old} ^ {new}",
    "atomic_xchg": "{new}",
}


def operators(program: Program, function: Function) -> Iterator[Change]:
    """Replace an operator or one of two opposite functions."""
    operand = program.operand
    for node in program.nodes(function):
        texts: list[str] = []
        if isinstance(node, ast.BinOp) and not _is_of_sequences(node):
            texts = [f"({operand(node.left)} {new} {operand(node.right)})" for new in BINARY.get(type(node.op), ())]
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            new = COMPARISONS[type(node.ops[0])]
            texts = [f"({operand(node.left)} {new} {operand(node.comparators[0])})"]
        elif isinstance(node, ast.BoolOp):
            new = " or " if isinstance(node.op, ast.And) else " and "
            texts = [f"({new.join(operand(value) for value in node.values)})"]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            texts = [operand(node.operand)]
        elif isinstance(node, ast.Name) and node.id in NAMES:
            texts = [NAMES[node.id]]
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            texts = [f"{operand(node.value)}.{NAMES[node.attr]}"]
        yield from _replaced(program, "operators", node, texts)


def _is_of_sequences(node: ast.BinOp) -> bool:
    """Return True for the sum of tuples or lists, whose opposite is a TypeError."""
    sequences = ast.Tuple | ast.List | ast.ListComp | ast.JoinedStr
    sides = (node.left, node.right)
    return any(isinstance(s, sequences) or isinstance(s, ast.Constant) and isinstance(s.value, str) for s in sides)


def constants(program: Program, function: Function) -> Iterator[Change]:
    """Replace a number by one near to it, an infinity by a finite number, and a bool by its opposite."""
    for node in program.nodes(function):
        texts: list[str] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            texts = [str(not node.value)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            texts = [str(node.value + 1), *([str(node.value - 1)] if node.value > 0 else [])]
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            texts = [repr(float(f"{node.value * (1 + LITTLE):.12g}") if node.value else LITTLE)]
        elif called(node) == "float" and "inf" in program.source(node):  # type: ignore[arg-type]
            sign = "-" if "-inf" in program.source(node) else ""  # type: ignore[arg-type]
            texts = ["0.0", f"({sign}{LARGE})"]
        yield from _replaced(program, "constants", node, texts)


def masks(program: Program, function: Function) -> Iterator[Change]:
    """Drop a mask or a condition of one, or replace what masked lanes load."""
    for node in program.nodes(function) if function.is_device else ():
        if isinstance(node, ast.Call) and (called(node) in MEMORY or called(node).startswith("atomic_")):
            keywords = {k.arg: k for k in node.keywords}
            if "mask" in keywords:
                yield from _replaced(program, "masks", node, [_without(program, node, ("mask", "other"))])
            if "other" in keywords:
                value = keywords["other"].value
                is_zero = isinstance(value, ast.Constant) and not value.value
                yield from _replaced(program, "masks", value, ["1" if is_zero else "0"])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and _is_condition(node):
            texts = [f"({program.source(side)})" for side in (node.left, node.right)]
            yield from _replaced(program, "masks", node, texts)


def _is_condition(node: ast.BinOp) -> bool:
    """Return True if an operand of `&` is a comparison or named as a mask."""
    nodes = list(ast.walk(node))
    named = any("mask" in n.id.lower() for n in nodes if isinstance(n, ast.Name))
    return named or any(isinstance(n, ast.Compare) for n in nodes)


def _without(program: Program, node: ast.Call, dropped: tuple[str, ...]) -> str:
    arguments = [program.source(a) for a in node.args]
    arguments += [program.source(k) for k in node.keywords if k.arg not in dropped]
    return f"{program.source(node.func)}({', '.join(arguments)})"


def dtypes(program: Program, function: Function) -> Iterator[Change]:
    """Replace a dtype by a narrower one, or drop a cast."""
    for node in program.nodes(function):
        texts: list[str] = []
        if isinstance(node, ast.Attribute) and node.attr in DTYPES and program.source(node.value) in ("tl", "torch"):
            texts = [f"{program.source(node.value)}.{DTYPES[node.attr]}"]
        elif isinstance(node, ast.Call) and called(node) == "to" and isinstance(node.func, ast.Attribute):
            texts = [program.operand(node.func.value)]
        elif isinstance(node, ast.Call) and called(node) in CASTS and node.args:
            texts = [program.operand(node.args[0])]
        yield from _replaced(program, "dtypes", node, texts)


def barriers(program: Program, function: Function) -> Iterator[Change]:
    """Delete a barrier, or replace an atomic operation by a load and a store."""
    for node in program.nodes(function) if function.is_device else ():
        if isinstance(node, ast.Expr) and called(node.value) == "debug_barrier":
            yield from _replaced(program, "barriers", node, ["pass"])
        elif isinstance(node, ast.Expr) and called(node.value) in COMBINED:
            yield from _replaced(program, "barriers", node, [_plain(program, node.value)])  # type: ignore[arg-type]
        elif isinstance(node, ast.Assign) and called(node.value) in (*COMBINED, "atomic_cas"):
            call = node.value
            assert isinstance(call, ast.Call)
            yield from _replaced(program, "barriers", call, [f"tl.load({_place(program, call)})"])


def _plain(program: Program, call: ast.Call) -> str:
    """Return the load, the operation and the store that an atomic operation does at once."""
    old, new = f"tl.load({_place(program, call)})", program.source(call.args[1])
    mask = _mask(program, call)
    return f"tl.store({program.source(call.args[0])}, {COMBINED[called(call)].format(old=old, new=f'({new})')}{mask})"


def _place(program: Program, call: ast.Call) -> str:
    return program.source(call.args[0]) + _mask(program, call)


def _mask(program: Program, call: ast.Call) -> str:
    masks = [k.value for k in call.keywords if k.arg == "mask"] + call.args[2:3]
    return f", mask={program.source(masks[0])}" if masks and called(call) != "atomic_cas" else ""


def strides(program: Program, function: Function) -> Iterator[Change]:
    """Replace a stride by another one or by 1, swap two strides, or drop `.contiguous()`."""
    names = sorted({n.arg for n in ast.walk(function.node.args) if isinstance(n, ast.arg) and "stride" in n.arg})
    for node in program.nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            # strides of a tuple have no single number in their place
            texts = [name for name in names if name != node.id and name.endswith("s") == node.id.endswith("s")][:2]
            yield from _replaced(program, "strides", node, texts + ([] if node.id.endswith("s") else ["1"]))
        elif isinstance(node, ast.Subscript) and "stride" in program.source(node.value).lower():
            if not isinstance(node.slice, ast.Slice | ast.Tuple) and isinstance(node.ctx, ast.Load):
                text = f"{program.source(node.value)}[{program.source(node.slice)} - 1]"
                yield from _replaced(program, "strides", node, [text])
        elif isinstance(node, ast.Call):
            yield from _of_call(program, node)


def _of_call(program: Program, node: ast.Call) -> Iterator[Change]:
    if called(node) == "stride" and len(node.args) == 1:
        owner, dimension = program.source(node.func), program.source(node.args[0])
        yield from _replaced(program, "strides", node, [f"{owner}({dimension} - 1)"])
    if called(node) == "contiguous" and isinstance(node.func, ast.Attribute):
        yield from _replaced(program, "strides", node, [program.operand(node.func.value)])
    for one, other in pairwise(node.args):
        first, second = program.source(one), program.source(other)
        if "stride" in first and "stride" in second and first != second:
            start, between, end = program.span(one), program.span(other)[0], program.span(other)[1]
            yield Change("strides", start[0], end, second + program.text[start[1] : between] + first)


def _replaced(program: Program, kind: str, node: ast.AST, texts: list[str]) -> Iterator[Change]:
    for text in texts:
        start, end = program.span(node)  # type: ignore[arg-type]
        yield Change(kind, start, end, text)


CLASSES: Mapping[str, Callable[[Program, Function], Iterator[Change]]] = {
    "operators": operators,
    "constants": constants,
    "masks": masks,
    "dtypes": dtypes,
    "barriers": barriers,
    "strides": strides,
    "orders": orders,
}
