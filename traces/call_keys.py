"""Call keys: the definition of equal calls, and the functions that compute keys.

Two calls are equal if they differ only in tensor contents and floats. The caller decides how to treat floats. A
recording puts them into buckets, because learning-rate schedules and bias corrections change them at every step.
Serving keeps each float at its position, because a launch takes the value itself.

`TENSOR_FIELDS` lists the tensor properties in a key. Three things are generated from it: `read_call`, which takes the
arguments of any call; `key_function`, which is compiled for one overload's schema; and the header that both C++
modules include (traces/cpp/call_key.h). A field that is added here becomes part of every key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch._ops import OpOverload

from traces.lazy_bits import lazy_bits, sees_lazy_bits
from traces.text import bucket

Found = TypeVar("Found")
INCLUDE = Path(__file__).parent / "cpp"


class Field(NamedTuple):
    """A tensor property that distinguishes calls.

    Attributes:
        python: The expression for a tensor `{t}`; hashable.
        cpp: The expression for an `at::Tensor t`: an integer, or an `IntArrayRef` if `is_list`.
        is_list: True for a list of integers, one for each dimension.
        strided: True for a field that only strided tensors have, False for one that only other layouts have, None for a
            field that every tensor has.
    """

    python: str
    cpp: str
    is_list: bool = False
    strided: bool | None = None


TENSOR_FIELDS = (
    Field("{t}.dtype", "t.scalar_type()"),
    Field("{t}.layout", "t.layout()", strided=False),
    # Hashing a torch.device is slow, so a string stands for the CPU and the index for a CUDA device.
    Field(
        "'cpu' if {t}.is_cpu else {t}.get_device() if {t}.is_cuda else {t}.device",
        "t.device().index() * 256 + static_cast<int64_t>(t.device().type())",
    ),
    Field("{t}.shape", "t.sizes()", is_list=True),
    Field("{t}.stride()", "t.strides()", is_list=True, strided=True),
    Field("BITS({t})", "t.is_conj() + 2 * t.is_neg() + 4 * t._is_zerotensor()", strided=True),
    # Strides of COO tensors carry no information, and their element count depends on their contents.
    Field("{t}.is_sparse and {t}.is_coalesced()", "t.is_sparse() && t.is_coalesced()", strided=False),
)


class CallParts(NamedTuple):
    """The arguments of a call, split into key, tensors and floats.

    Attributes:
        kind: Everything except tensor contents and float values. Calls that differ in anything else have different
            kinds.
        tensors: The tensors, in argument order.
        floats: The floats, in argument order.
        exact: True if every tensor is strided and has memory, and the key holds the value of every other argument. For
            a generator, for example, the key holds only the type.
    """

    kind: tuple[Hashable, ...]
    tensors: list[torch.Tensor]
    floats: list[float]
    exact: bool


def read_call(args: Iterable[Any], kwargs: Mapping[str, Any] | None, *head: Hashable) -> CallParts:
    """Return the parts of a call to any operator. `head` supplies the first items of its kind."""
    parts: list[Hashable] = [*head]
    tensors: list[torch.Tensor] = []
    floats: list[float] = []
    exact = _read((*args, *kwargs.values()) if kwargs else args, parts, tensors, floats)
    if kwargs:
        parts.append(tuple(kwargs))
    if len(tensors) > 1 and len(set(map(id, tensors))) < len(tensors):
        first: dict[int, int] = {}
        parts.extend([first.setdefault(id(t), len(first)) for t in tensors])
    return CallParts(tuple(parts), tensors, floats, exact)


def recorded_key(op: Hashable, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """Return a call's key for a recording, with floats in buckets. `op` is the called operator."""
    if type(op) is OpOverload:
        with suppress(AttributeError, RuntimeError, TypeError):  # see key_function
            return _hashed(op)(*args, **kwargs)
    return op, _token(args), _token(tuple(kwargs.items()))


def key_function(op: OpOverload, find: Callable[[Hashable], Found]) -> Callable[..., Found]:
    """Return a function that takes a call's arguments and returns `find(key)`.

    The function is generated from the overload's schema. The schema states the type of each argument, except for
    numbers that stand for tensors, so few type checks remain and one expression builds the key. The key is no finer
    than `recorded_key`. It is as fine as the signature text, which only states identity between a tensor and the first
    argument.

    The function takes its arguments as the dispatcher passes them. If a call has no such key, as with nested tensors
    and symbols, the function raises AttributeError, RuntimeError or TypeError, or calls `find` with an unhashable key.
    """
    compiled: Callable[..., Found] = _compiled(_source(op))(find)
    return compiled


def cpp_fields() -> str:
    """Return the C++ header `tensor_fields.h`: `put_fields` appends the fields of a tensor to the words of a key."""
    lines = []
    for field in TENSOR_FIELDS:
        when = {None: "", True: "if (t.layout() == c10::kStrided) ", False: "if (t.layout() != c10::kStrided) "}
        added = "{0}.begin(), {0}.end()" if field.is_list else "1, static_cast<int64_t>({0})"
        lines.append(f"  {when[field.strided]}words.insert(words.end(), {added.format(field.cpp)});")
    return _HEADER.format(fields="\n".join(lines))


_HEADER = """// Made from TENSOR_FIELDS of traces/call_keys.py.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace enablekit {{

inline void put_fields(std::vector<int64_t>& words, const at::Tensor& t) {{
{fields}
}}

}}  // namespace enablekit
"""


def _tuple(t: str, strided: bool, bits: bool = True) -> str:
    """Return the expression for a tensor's fields, for strided tensors or for all other layouts."""
    fields = [f for f in TENSOR_FIELDS if f.strided in (None, strided) and (bits or "BITS" not in f.python)]
    return f"({''.join(f'{f.python.format(t=t)}, ' for f in fields)})"


_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_EXACT = frozenset({int, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format})


def _read(values: Iterable[Any], parts: list[Hashable], tensors: list[torch.Tensor], floats: list[float]) -> bool:
    """Append the key items for these values. Return True if the items fully describe them."""
    exact = True
    for value in values:
        kind = type(value)
        if kind in _TENSORS or isinstance(value, torch.Tensor):
            tensors.append(value)
            try:
                if value.layout is torch.strided:
                    parts.append(_STRIDED(value))
                    exact = exact and kind in _TENSORS and not value._is_zerotensor()
                else:
                    parts.append(_OTHER(value))
                    exact = False
            except RuntimeError:  # nested tensors have neither sizes nor strides
                parts.append((value.layout, value.dtype, value.device))
                exact = False
        elif kind in _EXACT:
            parts.append(value)
        elif kind is float:
            parts.append(float)
            floats.append(value)
        elif kind is bool or kind is complex:
            parts.append(str(value))  # True == 1, but they promote differently
        elif kind is list or kind is tuple:
            parts.append((kind, len(value)))
            exact = _read(value, parts, tensors, floats) and exact
        else:
            parts.append(kind.__name__)
            exact = False
    return exact


_OMITTED = object()  # stands for an omitted argument whose default is not None, because None is a different value there
_TENSOR = ("Tensor", "Optional[Tensor]")
_FLOATS = ("float", "Optional[float]")
_NUMBERS = ("number", "Optional[number]")
_LISTS = ("List[int]", "Optional[List[int]]", "List[bool]")
_ITSELF = tuple(form for kind in ("int", "bool", "str", "Device") for form in (kind, f"Optional[{kind}]"))


@cache
def _source(op: OpOverload) -> str:
    parameters, parts = list[str](), list[str]()
    arguments = op._schema.arguments
    first = bool(arguments) and str(arguments[0].type) in _TENSOR and not arguments[0].kwarg_only
    named = False
    for i, argument in enumerate(arguments):
        if argument.kwarg_only and not named:
            named = True
            parameters.append("*")
        name = argument.name if argument.kwarg_only else f"argument_{i}"
        default = (
            "" if not argument.has_default_value() else "=OMITTED" if argument.default_value is not None else "=None"
        )
        parameters.append(name + default)
        parts.append(_part(str(argument.type), name, sees_lazy_bits(op)))
        if i and first and str(argument.type) in _TENSOR:
            parts.append(f"{name} is argument_0")
    return f"lambda FIND: lambda {', '.join(parameters)}: FIND(({''.join(f'{part}, ' for part in parts)}))"


def _part(kind: str, name: str, bits: bool) -> str:
    """Return the expression for one argument.

    Args:
        kind: The argument's type in the schema.
        name: The parameter that holds it.
        bits: True if tensors may have lazy bits.
    """
    if kind in _TENSOR:
        fields = f"{_tuple(name, True, bits)} if {name}.layout is STRIDED else OTHER({name})"
        return f"({fields}) if type({name}) is TENSOR or type({name}) is PARAMETER else {_number(name)}"
    if kind in _ITSELF:
        return name
    if kind in _FLOATS:
        return f"BUCKET({name}) if type({name}) is float else {name}"
    if kind in _NUMBERS:
        return _number(name)
    if kind in _LISTS:
        return f"tuple({name}) if type({name}) is list else {name}"
    if kind == "List[Tensor]":
        return f"tuple([{_tuple('t', True, bits)} if t.layout is STRIDED else OTHER(t) for t in {name}])"
    return f"TOKEN({name})"


def _number(name: str) -> str:
    itself = f"type({name}) is int or {name} is OMITTED or {name} is None"
    return f"BUCKET({name}) if type({name}) is float else {name} if {itself} else TOKEN({name})"


def _token(value: Any) -> Hashable:
    kind, _, floats, _ = read_call((value,), None)
    return kind, *map(bucket, floats)


def _evaluated(source: str, **names: Any) -> Any:
    """Return the value of an expression generated by this module.

    It contains argument names from schemas, which torch restricts to identifiers, so `exec` is safe here.
    """
    scope: dict[str, Any] = {"BITS": lazy_bits, **names}
    exec(f"value = {source}", scope)
    return scope["value"]


_STRIDED: Callable[[torch.Tensor], Hashable] = _evaluated(f"lambda t: {_tuple('t', True)}")
_OTHER: Callable[[torch.Tensor], Hashable] = _evaluated(f"lambda t: {_tuple('t', False)}")


@cache
def _compiled(source: str) -> Callable[..., Any]:
    types = {"TENSOR": torch.Tensor, "PARAMETER": torch.nn.Parameter, "STRIDED": torch.strided}
    compiled: Callable[..., Any] = _evaluated(
        source, **types, OMITTED=_OMITTED, BUCKET=bucket, TOKEN=_token, OTHER=_OTHER
    )
    return compiled


@cache
def _hashed(op: OpOverload) -> Callable[..., Hashable]:
    """Return a function from a call's arguments to (operator, key).

    The function raises TypeError if the key is unhashable.
    """

    def with_operator(key: Hashable) -> Hashable:
        hash(key)
        return op, key

    return key_function(op, with_operator)
