"""Derivation of in-place, `out=` and `_foreach_` overloads from one functional kernel.

All knowledge about derivation is in this module. A `Plan` names the overload whose kernel is used, and the
method; `call` runs it:

- foreach: run the kernel once per element in the tensor lists (ATen, native/ForeachOpsKernels.cpp, slow path).
  If it is built on the block `elementwise`, launches are combined for up to 32 tensors (multi_tensor_apply).
- foreach in place: if the functional foreach form has its own kernel that takes a destination, call it with
  `out=self`; if only an in-place twin exists (`aten::copy_`), call that.
- in place: call the kernel with `out=self` if its wrapper takes a destination, else the kernel and then the
  library's `aten::copy_` kernel.
- `out=`: call the kernel, then `aten::copy_` into the destination, which the platform resizes if its shape
  differs.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from traces.errors import UserError
from traces.facts import tagged
from traces.lazy_bits import lazy_bits
from traces.overloads import base_name, bind, name_of, resolve, written
from verify.contract import calling

COPY = "aten::copy_"
_SILENT = tagged("resizes_silently")
_BY_COLUMNS = tagged("by_columns")
_MADE_BY_COLUMNS = _BY_COLUMNS | tagged("empty_by_columns")
RESIZED = (  # ATen's own warning (Resize.cpp, `resize_output_check`)
    "An output with one or more elements was resized since it had shape {}, which does not match the required output "
    "shape {}. This behavior is deprecated; resize it to zero elements to use it again."
)
_FOREACH = "_foreach_"
_FOREACH_BASE = {"norm": "linalg_vector_norm"}  # operators whose foreach form has another name
_FUNCTIONAL = {"normal": "normal_functional"}  # operators whose functional form has another name
Wrapper = Callable[..., Any]


@dataclass(frozen=True)
class Plan:
    """One way to serve an overload.

    Attributes:
        overload: The overload to serve.
        base: The overload whose kernel runs.
        foreach: True if the kernel runs once per list element.
        written: Name of the argument that receives the result, or None.
    """

    overload: str
    base: str
    foreach: bool = False
    written: str | None = None

    @property
    def direct(self) -> bool:
        return self.overload == self.base

    @property
    def whole(self) -> bool:
        """Return True if the kernel takes entire lists and writes them in place, so that it has to accept `out`."""
        return not self.direct and self.base.startswith(f"aten::{_FOREACH}")


@cache
def plans(overload: str) -> tuple[Plan, ...]:
    """Return every way to serve `overload`, best first: its own kernel, then the functional overloads behind it."""
    candidates = [Plan(overload, overload)]
    schema = resolve(overload)._schema
    name = schema.name.removeprefix("aten::")
    targets = [a.name for a in schema.arguments if a.name in written(resolve(overload))]
    foreach = name.startswith(_FOREACH)
    if (not foreach and not targets) or len(targets) > 1:
        return tuple(candidates)
    if foreach and targets == ["self"]:
        packet, _, variant = overload.partition(".")
        functional = packet.removesuffix("_") + (f".{variant}" if variant else "")
        candidates += [Plan(overload, functional, written="self")] if _same_arguments(overload, functional) else []
    stem = name.removeprefix(_FOREACH).removesuffix("_") if targets != ["out"] else name.removeprefix(_FOREACH)
    packet = (_FOREACH_BASE if foreach else _FUNCTIONAL).get(stem, stem)
    distances = {b: _distance(schema, b) for b in _functional_overloads(packet)}
    fitting = [b for b, distance in distances.items() if distance is not None]
    fitting.sort(key=lambda b: (distances[b], b._overloadname != schema.overload_name, b._overloadname != "default"))
    target = targets[0] if targets else None
    candidates += [Plan(overload, name_of(b), foreach, target) for b in fitting]
    if foreach and targets == ["self"]:
        candidates += [Plan(overload, name_of(b), True, target) for b in _in_place_overloads(f"{stem}_", schema)]
    return tuple(candidates)


def _same_arguments(overload: str, functional: str) -> bool:
    """Return True if `functional` exists, writes nothing and takes the same arguments."""
    try:
        other = resolve(functional)
    except UserError:
        return False
    arguments = [[(a.name, str(a.type)) for a in op._schema.arguments] for op in (resolve(overload), other)]
    return not written(other) and arguments[0] == arguments[1]


def functional_base(overload: str) -> str:
    """Return the overload for which to write a kernel so that `overload` is served: its functional form, or itself."""
    candidates = plans(overload)
    same_kind = [p.base for p in candidates[1:] if not p.whole]
    return same_kind[0] if same_kind else overload


def _functional_overloads(packet: str) -> list[torch._ops.OpOverload]:
    if not packet or not hasattr(torch.ops.aten, packet):
        return []
    ops = getattr(torch.ops.aten, packet)
    overloads = [getattr(ops, name) for name in ops.overloads()]
    return [o for o in overloads if not written(o)]


def _in_place_overloads(packet: str, schema: Any) -> list[torch._ops.OpOverload]:
    """Return the in-place overloads that take the arguments for one element of a foreach overload."""
    ops = getattr(torch.ops.aten, packet, None)
    overloads = [] if ops is None else [getattr(ops, name) for name in ops.overloads()]
    return [b for b in overloads if _distance(schema, b) == 0]


def _element_type(type_text: str, foreach: bool) -> str:
    return {"List[Tensor]": "Tensor", "List[number]": "number"}.get(type_text, type_text) if foreach else type_text


def _places(schema_arguments: list[Any], base: torch._ops.OpOverload) -> list[int]:
    """Return the position in `base` for each argument in `schema_arguments`: by name, else by order."""
    names = [a.name for a in base._schema.arguments]
    return [names.index(a.name) if a.name in names else i for i, a in enumerate(schema_arguments)]


def _distance(schema: Any, base: torch._ops.OpOverload) -> int | None:
    """Count the numbers in `schema` that would be passed to Tensor parameters of `base`.

    Return None if an argument has no matching parameter. For a foreach overload, the arguments for one element
    are compared. Passing a number to a Tensor parameter is legal, because ATen wraps it in the same way.
    """
    foreach = schema.name.removeprefix("aten::").startswith(_FOREACH)
    passed = [a for a in schema.arguments if a.name != "out"]
    arguments = base._schema.arguments
    places = _places(passed, base)
    if any(p >= len(arguments) for p in places) or len(set(places)) < len(places):
        return None
    if not all(a.has_default_value() for i, a in enumerate(arguments) if i not in places):
        return None
    types = [(_element_type(str(a.type), foreach), str(arguments[p].type)) for a, p in zip(passed, places, strict=True)]
    wrapped = sum(g == "number" and p == "Tensor" for g, p in types)
    fits = all(g == p or (g == "number" and p in ("Tensor", "Optional[number]")) for g, p in types)
    return wrapped if fits else None


def call(
    plan: Plan,
    call_arguments: Mapping[str, Any],
    wrapper: Wrapper,
    takes_out: bool,
    copy: Wrapper | None,
    own_defaults: bool = False,
    warns: bool = True,
) -> Any:
    """Run `plan` with the base overload's wrapper.

    Args:
        plan: The way to serve the overload.
        call_arguments: Arguments by their schema names in `plan.overload`.
        wrapper: The wrapper for `plan.base`.
        takes_out: True if the wrapper accepts a destination as `out`.
        copy: Wrapper for the library's `aten::copy_`, or None; needed only if `takes_out` is False.
        own_defaults: Call the wrapper as its own signature requires (verify/contract/calling.py) instead of
            with every schema argument.
        warns: Warn if `out` is resized, as ATen does.

    Returns:
        The result that the schema of `plan.overload` declares.

    Raises:
        LookupError: A copy kernel is needed but missing.
    """
    arguments = bind(resolve(plan.overload), (), call_arguments)
    if plan.direct:
        return calling.call(plan.base, wrapper, arguments) if own_defaults else _invoke(plan.base, wrapper, arguments)
    out = arguments.pop("out") if plan.written == "out" else None
    elements = _split(arguments) if plan.foreach else [arguments]
    outs = out if plan.foreach and out is not None else [out] * len(elements)
    run = _Element(plan, wrapper, takes_out, copy, warns)
    writes = bool(written(resolve(plan.base)))
    # The copy reads the result of each element at once, so its launch may not be held back.
    alone = out is not None or (plan.written is not None and not (takes_out or writes))
    with nullcontext() if alone or len(elements) < 2 or _has_sparse(call_arguments) else _together(wrapper):
        results = [run(element, o) for element, o in zip(elements, outs, strict=True)]
    if plan.written and not resolve(plan.overload)._schema.returns:
        return None
    return results if plan.foreach else results[0]


def call_direct(
    op: torch._ops.OpOverload, wrapper: Wrapper, args: tuple[Any, ...], kwargs: dict[str, Any], **extra: Any
) -> Any:
    """Call the wrapper for a direct plan, with arguments as the dispatcher passes them.

    This is faster than `call`. `extra` holds additional keywords for the wrapper, such as `out=self` for a plan
    that is `whole`.
    """
    positional, keywords = _defaults(op)
    if not kwargs.keys() <= keywords.keys():
        return _invoke(name_of(op), wrapper, bind(op, args, kwargs), **extra)
    return wrapper(*args, *positional[len(args) :], **{**keywords, **kwargs}, **extra)


@cache
def _defaults(op: torch._ops.OpOverload) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the defaults for the positional arguments, and those for the keyword-only ones by name.

    An argument without a default gets None.
    """
    schema = op._schema.arguments
    defaults = bind(op, (), {a.name: None for a in schema if not a.has_default_value()})
    return tuple(defaults[a.name] for a in schema if not a.kwarg_only), {
        a.name: defaults[a.name] for a in schema if a.kwarg_only
    }


class Held(threading.local):
    """Launches that the block `elementwise` prepared in this thread, waiting for those of the other elements."""

    entries: list[Any] | None = None

    def append(self, entry: Any) -> bool:
        """Keep a launch back. Return False if launches are not being collected."""
        if self.entries is None:
            return False
        self.entries.append(entry)
        return True


@contextmanager
def _together(wrapper: Wrapper) -> Iterator[None]:
    """Combine the launches through the block `elementwise` into as few as possible, when the context ends."""
    names = getattr(wrapper, "__globals__", {})
    if "launch_elementwise" not in names:
        yield
        return
    delayed = names["HELD"] = names["HELD"] or Held()
    delayed.entries = []
    try:
        yield
        names["launch_elementwise"](delayed.entries)
    finally:
        delayed.entries = None


def _has_sparse(arguments: Mapping[str, Any]) -> bool:
    lists = (v if isinstance(v, list | tuple) else [v] for v in arguments.values())
    return any(isinstance(x, torch.Tensor) and x.layout != torch.strided for xs in lists for x in xs)


def _split(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments for each element: lists are split, everything else is shared."""
    length = len(next(v for v in arguments.values() if isinstance(v, list | tuple)))
    return [{k: v[i] if isinstance(v, list | tuple) else v for k, v in arguments.items()} for i in range(length)]


def base_arguments(plan: Plan, arguments: Mapping[str, Any], destination: Any) -> dict[str, Any]:
    """Return the base overload's arguments by name, for a result that the destination can receive.

    A `dtype` or `device` that the caller did not choose is taken from the destination. Factories create their
    result there, and reductions compute in its dtype, as in ATen (ReduceOps.cpp, `infer_dtype_from_optional`).

    Args:
        plan: The way to serve the overload.
        arguments: Arguments for the overload, or for one element of a foreach overload, in schema order,
            without `out`.
        destination: The tensor or list of tensors that is written, or None.
    """
    schema_arguments = [a for a in resolve(plan.overload)._schema.arguments if a.name != "out"]
    base = resolve(plan.base)
    names = [base._schema.arguments[p].name for p in _places(schema_arguments, base)]
    values = bind(base, (), dict(zip(names, arguments.values(), strict=True)))
    like = destination[0] if isinstance(destination, list | tuple) and destination else destination
    if isinstance(like, torch.Tensor):
        values |= {name: getattr(like, name) for name in ("dtype", "device") if values.get(name, like) is None}
    return values


@dataclass(frozen=True)
class _Element:
    plan: Plan
    wrapper: Wrapper
    takes_out: bool
    copy: Wrapper | None
    warns: bool

    def __call__(self, arguments: dict[str, Any], out: torch.Tensor | list[torch.Tensor] | None) -> Any:
        destination = None
        if self.plan.written is not None and not written(resolve(self.plan.base)):
            destination = next(iter(arguments.values())) if out is None else out
        values = base_arguments(self.plan, arguments, destination)
        if destination is None:
            return _invoke(self.plan.base, self.wrapper, values)
        if self.takes_out and out is None and not (isinstance(destination, torch.Tensor) and lazy_bits(destination)):
            _invoke(self.plan.base, self.wrapper, values, out=destination)
        else:
            self._copy(destination, _invoke(self.plan.base, self.wrapper, values))
        return destination

    def _copy(self, destination: Any, result: Any) -> None:
        if self.copy is None:
            raise LookupError(f"{self.plan.overload} derives from {self.plan.base} and {COPY}, which has no kernel")
        if isinstance(destination, list | tuple):  # for example in aten::split_with_sizes_copy.out
            for each, part in zip(destination, result, strict=True):
                self._copy(each, part)
            return
        if destination.shape != result.shape:
            if self.warns and destination.numel() and not _resizes_silently(self.plan.base):
                warnings.warn(RESIZED.format(list(destination.shape), list(result.shape)), UserWarning, stacklevel=2)
            as_result = base_name(resolve(self.plan.base)) in (_BY_COLUMNS if destination.numel() else _MADE_BY_COLUMNS)
            destination.resize_(result.shape)
            if as_result:
                destination.as_strided_(result.shape, result.stride())
        self.copy(destination, result, False)


@cache
def _resizes_silently(base: str) -> bool:
    """Return True if ATen's `out=` form resizes without a warning, as factories do."""
    op = resolve(base)
    makes = not any("Tensor" in str(a.type) for a in op._schema.arguments)
    return makes or base_name(op) in _SILENT


def _invoke(overload: str, wrapper: Wrapper, values: Mapping[str, Any], **extra: Any) -> Any:
    """Call the wrapper with every argument of `overload`, positional or by name as in its schema."""
    schema = resolve(overload)._schema
    positional = [values[a.name] for a in schema.arguments if not a.kwarg_only]
    keywords = {a.name: values[a.name] for a in schema.arguments if a.kwarg_only}
    return wrapper(*positional, **keywords, **extra)
