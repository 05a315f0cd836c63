"""ATen overloads by full name: `aten::add.Tensor`, or `aten::mm` for the overload that PyTorch calls default.

States which arguments an overload writes or never reads, which kind of work it does, and how to call it by
argument name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import torch
from torch._library.custom_ops import OPDEFS
from torch._ops import OpOverload, OpOverloadPacket, _OpNamespace

from traces.errors import UserError, did_you_mean
from traces.facts import tagged
from traces.packed import pack_padded_sequence

Kind: TypeAlias = Literal["compute", "view", "memory", "random"]

_NAME = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_]\w*)(?:\.(\w+))?")

_ALLOCATION = tagged("allocation")
_TRANSFER = tagged("transfer")
_MEMORY = _ALLOCATION | _TRANSFER | tagged("bookkeeping")
# Namespace of PyTorch operators that are defined in Python by other operators, for every device.
_IN_PYTHON = "torch_nn"
_OF_FSDP = "fsdp"  # copies around FSDP's collectives; registered for each device, as the same function
_UNSAID = tagged("unstated_views")
_OF_PARTS = tagged("of_parts")
_READ_CONTENTS = tagged("reads_contents")
_MAY_COPY = tagged("may_copy")
_OVERWRITE_SELF = tagged("overwrites_self")
UPDATED = tagged("updated")
# Schemas give these defaults as the integer values of C++ enumerators.
_ENUM_DEFAULTS: dict[str, dict[int, Any]] = {
    "ScalarType": {4: torch.int64},
    "MemoryFormat": {0: torch.contiguous_format},
}


# CPU-only operators, named after CPUs or CPU libraries. The dispatcher never calls them for another device.
_OF_CPUS = re.compile(r"^(mkl|mkldnn\w*|onednn)::|mkldnn|nnpack|fbgemm|_for_cpu|_cpu_fallback|_packed_weight_cpu")


def of_cpus(overload: str) -> bool:
    """Return True if the overload of this name is CPU-only, so no accelerator ever receives it."""
    return _OF_CPUS.search(overload) is not None


def name_of(op: OpOverload) -> str:
    """Return the full name, such as `aten::add.Tensor`; the default overload has no suffix."""
    name: str = op._schema.name
    return name if op._overloadname == "default" else f"{name}.{op._overloadname}"


@cache
def _near(name: str) -> str:
    """Return the operators with similar names, for an error message."""
    return did_you_mean(name, {known.partition(".")[0] for known in torch._C._dispatch_get_all_op_names()})


@cache
def resolve(name: str) -> OpOverload:
    """Return the overload with this full name, without evaluating or loading anything.

    Raise UserError if PyTorch has no such overload.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise UserError(f"{name[:80]!r} is not an overload name; write it like aten::add.Tensor or aten::mm")
    namespace, base, overload = match.groups()
    space = getattr(torch.ops, namespace, None)
    packet = getattr(space, base, None) if isinstance(space, _OpNamespace) else None
    if not isinstance(packet, OpOverloadPacket):
        raise UserError(f"{name}: torch {torch.__version__} has no such operator{_near(name)}")
    op = getattr(packet, overload or "default", None)
    if not isinstance(op, OpOverload):
        raise UserError(f"{name}: no such overload; {namespace}::{base} has {', '.join(packet.overloads())}")  # type: ignore[no-untyped-call]
    return op


def base_name(op: OpOverload) -> str:
    """Return the operator's name without namespace and overload: `add` for `aten::add.Tensor`."""
    return str(op._schema.name).partition("::")[2]


@cache
def in_python(op: OpOverload) -> Callable[..., Any] | None:
    """Return the function that every device runs for a PyTorch operator composed from other operators, or None."""
    if op._schema.name == "aten::_pack_padded_sequence":
        return pack_padded_sequence
    if op.namespace == _OF_FSDP and op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CPU):
        return partial(op._op_dk, torch._C.DispatchKey.CPU)
    definition = OPDEFS.get(op._schema.name) if op.namespace == _IN_PYTHON else None
    return None if definition is None else definition._init_fn


@cache
def written(op: OpOverload) -> frozenset[str]:
    """Return the argument names that the overload writes to, including `out`."""
    return frozenset(a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write)


@cache
def write_only(op: OpOverload) -> frozenset[str]:
    """Return the written arguments, by name, whose previous contents are never read."""
    outs = frozenset(a.name for a in op._schema.arguments if a.is_out)
    overwritten = {"self"} if base_name(op) in _OVERWRITE_SELF else set()
    return outs | (overwritten & written(op))


@cache
def unread(op: OpOverload) -> frozenset[str]:
    """Return the arguments, by name, whose contents are never read.

    These are write-only destinations; for views, the viewed tensor; and for other calls that move no data, every
    argument. Other tensor arguments of a view may describe the
    result, such as the sizes of a nested tensor, so they count as read.
    """
    if moves_data(op):
        return write_only(op)
    descriptive = {a.name for a in op._schema.arguments if a.alias_info is None and "Tensor" in str(a.type)}
    everything = frozenset(a.name for a in op._schema.arguments)
    return everything - descriptive if _static_kind(op) == "view" and _aliases_input(op) else everything


@cache
def moves_data(op: OpOverload) -> bool:
    """Return False if a call only reads and writes metadata: views, allocations, metadata queries."""
    return _static_kind(op) not in ("view", "memory") or base_name(op) in _TRANSFER


def uninitialised(op: OpOverload) -> bool:
    """Return True if the result's contents are uninitialised memory."""
    return base_name(op) in _ALLOCATION


def kind(op: OpOverload | str, arguments: Mapping[str, Any] | None = None) -> Kind:
    """Classify the work that a call does.

    - view: the result aliases an input, or only metadata changes.
    - memory: allocation, transfer of one element, or metadata queries; the platform provides these.
    - random: the call draws from a generator. Overloads with a `dropout_p` do so only if it is positive.
    - compute: everything else, which is the work of a kernel.

    Args:
        op: An overload or its full name.
        arguments: Arguments by schema name; None stands for the defaults.
    """
    op = resolve(op) if isinstance(op, str) else op
    static = _static_kind(op)
    if static == "random" and _dropout_p(op) is not None:
        p = (arguments or {}).get("dropout_p", _dropout_p(op))
        return "random" if p > 0 else "compute"
    return static


def may_draw(overload: str) -> bool:
    """Return True if some calls of this overload draw from a generator."""
    return _static_kind(resolve(overload)) == "random"


@cache
def counterpart(overload: str) -> str | None:
    """Return the backward overload for a forward one with a `dropout_p`, and vice versa; None for any other overload.

    Both must drop the same elements.
    """
    if _dropout_p(resolve(overload)) is None:
        return None
    stem = overload.removesuffix("_forward").removesuffix("_backward")
    candidates = (f"{stem}_backward",) if stem + "_backward" != overload else (stem, f"{stem}_forward")
    return next((o for o in candidates if o in torch._C._dispatch_get_all_op_names()), None)


@cache
def _dropout_p(op: OpOverload) -> float | None:
    """Return the default for the overload's `dropout_p` (0 if it has no default), or None without such an argument."""
    parameters = [a for a in op._schema.arguments if a.name == "dropout_p"]
    return (parameters[0].default_value or 0.0) if parameters else None


@cache
def _static_kind(op: OpOverload) -> Kind:
    schema, base = op._schema, base_name(op)
    if base in _MEMORY:
        return "memory"
    if torch.Tag.inplace_view in op.tags or _aliases_input(op):
        return "view"
    if base in _OF_PARTS | _UNSAID and not any(a.is_out for a in schema.arguments):
        return "view"
    if torch.Tag.nondeterministic_seeded in op.tags:
        return "random"
    returns_tensor = any("Tensor" in str(r.type) for r in schema.returns)
    if not returns_tensor and not written(op) and base not in _READ_CONTENTS:
        return "memory"
    return "compute"


def _aliases_input(op: OpOverload) -> bool:
    def read_alias(values: list[Any]) -> bool:
        return any(v.alias_info is not None and not v.alias_info.is_write for v in values)

    may_copy = base_name(op) in _MAY_COPY
    return not may_copy and read_alias(op._schema.returns) and read_alias(op._schema.arguments)


@cache
def _parameters(op: OpOverload) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the argument names in schema order, and the defaults by name."""
    defaults = {a.name: _default(a) for a in op._schema.arguments if a.has_default_value()}
    return tuple(a.name for a in op._schema.arguments), defaults


def _default(argument: Any) -> Any:
    for enum, values in _ENUM_DEFAULTS.items():
        if enum in str(argument.real_type) and isinstance(argument.default_value, int):
            return values[argument.default_value]
    return argument.default_value


def bind(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return every schema argument by name, in schema order, with defaults filled in."""
    names, defaults = _parameters(op)
    values = {**dict(zip(names, args, strict=False)), **kwargs}
    return {name: values[name] if name in values else defaults[name] for name in names}


def positional(op: OpOverload, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Split arguments by schema name into positional ones and keyword-only ones, as the overload takes them."""
    args = tuple(arguments[a.name] for a in op._schema.arguments if not a.kwarg_only)
    return args, {a.name: arguments[a.name] for a in op._schema.arguments if a.kwarg_only}


def call(op: OpOverload, arguments: Mapping[str, Any]) -> Any:
    """Call the overload with arguments by schema name."""
    args, kwargs = positional(op, arguments)
    return op(*args, **kwargs)
