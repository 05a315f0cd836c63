"""Keys of calls that are counted and nothing else, equal for calls that `signatures.call_token` finds alike alone.

They are made by one function an overload, written after its schema. Since that says what each argument may be, but for
numbers that stand for tensors, little is asked of its type, and one expression makes the key. In C++ (cpp/keys.cpp)
they are the arguments as bytes, and made in a fifth of the time.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch._ops import OpOverload

from capture.compiled import NativeModule, Unavailable
from capture.signatures import token
from traces.lazy_bits import lazy_bits, sees_lazy_bits
from traces.text import bucket

Found = TypeVar("Found")


class ByKey(Protocol):
    """What is found by the key of a call of an overload: a function of its arguments, passed as the dispatcher does.

    It raises AttributeError, RuntimeError or TypeError, or finds by what has no hash, where a call has no such key, as
    with nested tensors and symbols.
    """

    def __call__(self, op: OpOverload, find: Callable[[Hashable], Found]) -> Callable[..., Found]: ...


MODULE = NativeModule("enablekit_keys", Path(__file__).parent / "cpp", "keys of calls")
_CPU = "cpu"  # in place of this device, and the number in place of a GPU: a device has a slow hash
_OMITTED = object()  # where a schema's default is not None, so that None is another value
_TENSOR = ("Tensor", "Optional[Tensor]")
_FLOATS = ("float", "Optional[float]")
_NUMBERS = ("number", "Optional[number]")
_LISTS = ("List[int]", "Optional[List[int]]", "List[bool]")
_ITSELF = tuple(form for kind in ("int", "bool", "str", "Device") for form in (kind, f"Optional[{kind}]"))


def maker(directory: str | os.PathLike[str] | None) -> ByKey:
    """By keys that C++ makes, by a module in this directory; if it cannot be had, with a warning by those of Python."""
    try:
        return by_key if directory is None else in_cpp(Path(directory))
    except Unavailable as error:
        warnings.warn(f"calls are told apart in Python, not in C++: {error}", RuntimeWarning, stacklevel=3)
        return by_key


def in_cpp(directory: Path) -> ByKey:
    """By keys that C++ makes. Raises Unavailable."""
    finder = MODULE.load(directory).finder
    return lambda op, find: finder(find)


def by_key(op: OpOverload, find: Callable[[Hashable], Found]) -> Callable[..., Found]:
    """By keys that Python makes."""
    made: Callable[..., Found] = _compiled(_source(op))(find)
    return made


@cache
def _source(op: OpOverload) -> str:
    given, parts = list[str](), list[str]()
    arguments = op._schema.arguments
    first = bool(arguments) and str(arguments[0].type) in _TENSOR and not arguments[0].kwarg_only
    named = False
    for i, argument in enumerate(arguments):
        if argument.kwarg_only and not named:
            named = True
            given.append("*")
        name = argument.name if argument.kwarg_only else f"argument_{i}"
        default = (
            "" if not argument.has_default_value() else "=OMITTED" if argument.default_value is not None else "=None"
        )
        given.append(name + default)
        parts.append(_part(str(argument.type), name, "argument_0" if first and i else "", sees_lazy_bits(op)))
    return f"lambda FIND: lambda {', '.join(given)}: FIND(({''.join(f'{part}, ' for part in parts)}))"


def _part(kind: str, name: str, first: str, bits: bool) -> str:
    """Return an expression, or several, for one argument.

    Args:
        kind: the argument's type in the schema.
        name: the parameter that holds it.
        first: the parameter of the call's first tensor, which this one may be once more; "" if it cannot be.
        bits: whether tensors may have lazy bits.
    """
    if kind in _TENSOR:
        again = f"{name} is {first}, " if first else ""
        strides = f"{name}.stride() if {name}.layout is STRIDED else OTHER({name})"
        where = f"{name}.get_device() if {name}.is_cuda else {name}.is_cpu and CPU or {name}.device"
        unresolved = f", {name}.layout is STRIDED and BITS({name})" if bits else ""
        properties = f"({again}{name}.shape, {strides}, {name}.dtype, {where}{unresolved})"
        return f"{properties} if type({name}) is TENSOR or type({name}) is PARAMETER else {_number(name)}"
    if kind in _ITSELF:
        return name
    if kind in _FLOATS:
        return f"BUCKET({name}) if type({name}) is float else {name}"
    if kind in _NUMBERS:
        return _number(name)
    if kind in _LISTS:
        return f"tuple({name}) if type({name}) is list else {name}"
    return f"TENSORS({name})" if kind == "List[Tensor]" else f"TOKEN({name})"


def _number(name: str) -> str:
    itself = f"type({name}) is int or {name} is OMITTED or {name} is None"
    return f"BUCKET({name}) if type({name}) is float else {name} if {itself} else TOKEN({name})"


@cache
def _compiled(source: str) -> Callable[..., Any]:
    """The function of this source, which names of arguments go into: torch takes none but identifiers."""
    scope: dict[str, Any] = {"TENSOR": torch.Tensor, "PARAMETER": torch.nn.Parameter, "STRIDED": torch.strided}
    scope |= {"OMITTED": _OMITTED, "BUCKET": bucket, "TOKEN": token, "TENSORS": _tensors, "OTHER": _other, "CPU": _CPU}
    scope["BITS"] = lazy_bits
    exec(f"made = {source}", scope)
    made: Callable[..., Any] = scope["made"]
    return made


def _tensors(values: list[torch.Tensor]) -> Hashable:
    strided = torch.strided
    return tuple(
        [
            (
                t.shape,
                t.stride() if t.layout is strided else _other(t),
                t.dtype,
                t.get_device() if t.is_cuda else t.is_cpu and _CPU or t.device,
            )
            for t in values
        ]
    )


def _other(t: torch.Tensor) -> Hashable:
    """In place of strides: COO tensors have some that say nothing."""
    return t.layout, t.is_sparse and t.is_coalesced()
