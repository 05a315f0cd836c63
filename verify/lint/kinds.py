"""Static knowledge about values in host code: their kinds, and how operations combine them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from verify.lint.names import Names
from verify.lint.profile import Profile
from verify.syntax import walk


class Kind(Enum):
    """Kind of a value in host code.

    VALUE means nothing is known, or none of the others. LIST kinds are mutable, so they are not allowed as
    kernel arguments. A DEVICE value reveals on which device the program runs, or contains one that does; a
    KERNEL also reveals it. Both may only be passed on.
    """

    VALUE = "value"
    TENSOR = "tensor"
    TENSORS = "tensors"
    TENSOR_LIST = "list of tensors"
    LIST = "list"
    LIMITS = "limits"
    KERNEL = "kernel"
    DEVICE = "device"


_ASKING = frozenset({"isinstance", "hasattr", "is_tensor", "type"})
_OF_TENSORS = frozenset(
    {
        *("shape", "stride", "dim", "ndim", "nelement", "dtype", "device", "is_contiguous", "contiguous", "clone"),
        *("element_size", "storage_offset", "data_ptr", "expand", "permute", "reshape", "view", "unsqueeze"),
        *("transpose", "numpy", "item", "detach"),
    }
)

DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
Env: TypeAlias = dict[str, Kind]
HOLDS_TENSORS = frozenset({Kind.TENSOR, Kind.TENSORS, Kind.TENSOR_LIST})
MUTABLE = frozenset({Kind.LIST, Kind.TENSOR_LIST})
# Tensor attributes that reveal where the program runs, or for whom: a wrapper does the same everywhere. `is_cuda` is
# not among them, because verify/child/processors.py makes it true and false on any machine.
DEVICES = frozenset({"device", "is_cpu", "get_device", "requires_grad"})
OF_PARAMETER = {"tensor": Kind.TENSOR, "tensors": Kind.TENSOR_LIST, "value": Kind.VALUE}
OF_RESULT = {"tensor": Kind.TENSOR, "tensors": Kind.TENSORS, "limits": Kind.LIMITS, "value": Kind.VALUE}
OPAQUE = frozenset({Kind.DEVICE, Kind.KERNEL})


def join(a: Kind, b: Kind) -> Kind:
    """Return the kind of a value that has one kind or the other."""
    if Kind.DEVICE in (a, b):
        return Kind.DEVICE
    return a if a == b else Kind.VALUE


def merge(a: Env, b: Env) -> Env:
    """Return the known kinds after either of two branches."""
    return {name: join(a.get(name, b.get(name, Kind.VALUE)), b.get(name, a.get(name, Kind.VALUE))) for name in a | b}


def element(kind: Kind) -> Kind:
    """Return the kind that the elements of such a value have."""
    if kind is Kind.DEVICE:
        return Kind.DEVICE
    return Kind.TENSOR if kind in HOLDS_TENSORS else Kind.VALUE


def of_display(elements: list[Kind], mutable: bool) -> Kind:
    """Return a tuple's or list's kind; it holds tensors only if all elements are tensors."""
    if Kind.DEVICE in elements:
        return Kind.DEVICE
    tensors = bool(elements) and all(k is Kind.TENSOR for k in elements)
    if mutable:
        return Kind.TENSOR_LIST if tensors else Kind.LIST
    return Kind.TENSORS if tensors else Kind.VALUE


def of_operator(op: ast.operator, left: Kind, right: Kind) -> Kind:
    """Return the kind of `left op right`."""
    for known in (Kind.TENSOR, Kind.DEVICE):
        if known in (left, right):
            return known
    if isinstance(op, ast.Mult):
        return left if left is not Kind.VALUE else right  # a list times a number
    return Kind.LIST if Kind.LIST in (left, right) else join(left, right)


def of_attribute(name: str, base: Kind, profile: Profile) -> Kind:
    """Return the kind of `base.name`, or of the result if it is called."""
    if base is Kind.LIMITS:
        return Kind.VALUE
    if base is Kind.DEVICE or name in DEVICES:
        return Kind.DEVICE
    result_kinds = profile.host.attributes.get(name, frozenset())
    if base is Kind.TENSOR and not result_kinds:
        return Kind.TENSOR
    if "tensor" in result_kinds:
        return Kind.TENSOR
    return Kind.TENSORS if "tensors" in result_kinds else Kind.VALUE


def leaves(body: list[ast.stmt]) -> bool:
    """Return True if a block never runs to its end."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def tensor_parameters(function: ast.FunctionDef) -> set[str]:
    """Return the parameters that the body uses only as tensors can be used, without testing their type."""
    type_tested: set[str] = set()
    used: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _OF_TENSORS:
            used.add(node.value.id)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _ASKING:
            type_tested |= {a.id for a in node.args[:1] if isinstance(a, ast.Name)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "empty_like":
            used |= {a.id for a in node.args[:1] if isinstance(a, ast.Name)}
    return used - type_tested


def narrowed(test: ast.expr, names: Names, tests: Mapping[str, tuple[Env, Env]]) -> tuple[Env, Env]:
    """Return the kinds that a test implies for names if it is true, and if it is false.

    It understands `isinstance(x, torch.Tensor)`, its negation, `and` if all operands are true, and `or` if none
    is. `tests` holds the implications for tests that are bound to a name.
    """
    if isinstance(test, ast.Name) and test.id in tests:
        return tests[test.id]
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        holds, fails = narrowed(test.operand, names, tests)
        return fails, holds
    if isinstance(test, ast.BoolOp):
        parts = [narrowed(value, names, tests) for value in test.values]
        every: Env = {}
        for holds, fails in parts:
            every |= holds if isinstance(test.op, ast.And) else fails
        return (every, {}) if isinstance(test.op, ast.And) else ({}, every)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance":
        subject, kind = (*test.args, None, None)[:2]
        if isinstance(subject, ast.Name) and kind is not None and names.dotted(kind) == "torch.Tensor":
            return {subject.id: Kind.TENSOR}, {subject.id: Kind.VALUE}
    return {}, {}
