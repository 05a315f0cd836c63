"""BackendBench's text for a call's arguments: `((T([2, 3], f16, [1, 2]), 1), {'dtype': f32})`.

The text is written from a stored call, and read back from the syntax tree alone: nothing is evaluated.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._dtype_abbrs import dtype_abbrs

from traces.errors import TraceError
from traces.exchange.layout import TensorSpec, Unreadable, to_device
from traces.format import to_json
from traces.overloads import bind
from traces.text import row_major
from traces.values import Json, pack

MAX_TEXT = 1 << 20  # characters in one call
_SHORT = {str(dtype).removeprefix("torch."): short for dtype, short in dtype_abbrs.items()}
_NAMES: dict[str, Any] = {short: dtype for dtype, short in dtype_abbrs.items()} | {"inf": math.inf, "nan": math.nan}
_TORCH = {str(v): v for v in vars(torch).values() if isinstance(v, torch.dtype | torch.layout | torch.memory_format)}


class Hostile(TraceError):
    """Text that is valid Python but not a call's arguments; other tools would run it, because they use eval."""


def write_arguments(op: OpOverload, header: dict[str, Json]) -> str:
    """Format a stored call's arguments, without keyword-only and trailing ones that equal the schema's defaults.

    Raise Unreadable with the reason if the format cannot express them.
    """
    tree = header["tree"]
    arguments = op._schema.arguments
    missing = [a.name for a in arguments if a.name not in tree]
    if missing:
        raise Unreadable(f"without the schema's argument {missing[0]}")
    plain = {a.name for a in arguments if _is_default(op, a.name, tree[a.name])}
    positional = [a.name for a in arguments if not a.kwarg_only]
    while positional and positional[-1] in plain:
        positional.pop()
    named = [a.name for a in arguments if a.kwarg_only and a.name not in plain]
    values = [_text(tree[name], header["tensors"]) for name in positional]
    pairs = [f"{name!r}: {_text(tree[name], header['tensors'])}" for name in named]
    return f"({_tuple(values)}, {{{', '.join(pairs)}}})"


def _is_default(op: OpOverload, name: str, value: Json) -> bool:
    optional = {a.name for a in op._schema.arguments if a.has_default_value()}
    if name not in optional:
        return False
    required = {a.name: None for a in op._schema.arguments if a.name not in optional}
    return to_json(pack({name: bind(op, (), required)[name]}).tree[name]) == to_json(value)


def _tuple(values: list[str]) -> str:
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"


def _text(value: Json, tensors: list[Json]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(v, tensors) for v in value)}]"
    if not isinstance(value, dict):
        return repr(value)
    tag, content = next(iter(value.items()))
    if tag == "tensor":
        return _tensor_text(tensors[content])
    if tag == "tuple":
        return _tuple([_text(v, tensors) for v in content])
    if tag == "float":
        return repr(float.fromhex(content))
    if tag == "complex":
        return repr(complex(*map(float.fromhex, content)))
    if tag == "dtype":
        return _SHORT.get(content, f"torch.{content}")
    if tag in ("layout", "memory_format"):
        return f"torch.{content}"
    if tag == "device":
        return repr(content)
    raise Unreadable("with a sparse tensor" if tag == "sparse_coo" else f"with an unsupported value: {content}")


def _tensor_text(ref: Json) -> str:
    if ref["dtype"] not in _SHORT:
        raise Unreadable(f"with a tensor of {ref['dtype']}")
    strides = "" if tuple(ref["stride"]) == row_major(ref["shape"]) else f", {list(ref['stride'])}"
    return f"T({list(ref['shape'])}, {_SHORT[ref['dtype']]}{strides})"


def read_arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Parse positional and named arguments; tensors become TensorSpec.

    Raises:
        Unreadable: If the text is malformed or a value is out of range.
        Hostile: If it contains anything except values in this format.
    """
    if len(text) > MAX_TEXT:
        raise Unreadable(f"longer than {MAX_TEXT} characters")
    try:
        tree = ast.parse(text.strip().strip("'\""), mode="eval").body
        value = _value(tree)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise Unreadable("not in the form ((arguments), {named arguments})") from error
    match value:
        case (tuple() as args, dict() as kwargs) if all(isinstance(name, str) for name in kwargs):
            return args, kwargs
    raise Unreadable("not in the form ((arguments), {named arguments})")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | complex() | str() as value):
            return _checked(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=complex() as imaginary)):
            return _number(left) + imaginary
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=complex() as imaginary)):
            return _number(left) - imaginary
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_name(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.Attribute(value=ast.Name(id="torch"), attr=attribute) if f"torch.{attribute}" in _TORCH:
            return _TORCH[f"torch.{attribute}"]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            return _call(name, args, keywords)
    raise Hostile(f"{ast.unparse(node)[:80]} is not a value of this form and is not run")


def _checked(value: Any) -> Any:
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise Unreadable("an integer beyond 64 bits")
    return value


def _number(node: ast.expr) -> Any:
    value = _value(node)
    if isinstance(value, bool) or not isinstance(value, int | float | complex):
        raise Unreadable("a sign before something that is not a number")
    return value


def _name(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str() as name):
            return name
    raise Unreadable("a named argument without a name")


def _call(name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Any:
    if name == "ST":
        raise Unreadable("with a sparse tensor")
    if name not in ("T", "device"):
        raise Hostile(f"a call of {name[:80]} is not a value of this form and is not run")
    values, named = [_value(a) for a in args], {k.arg: _value(k.value) for k in keywords}
    return _tensor(values, named) if name == "T" else _device(values, named)


def _device(values: list[Any], named: dict[str | None, Any]) -> torch.device:
    parts = dict(zip(("type", "index"), values, strict=False)) | named
    match (parts.get("type"), parts.get("index")):
        case (str() as kind, int() as index) if len(parts) == 2:
            return to_device(f"{kind}:{index}")
        case (str() as kind, None):
            return to_device(kind)
    raise Unreadable("a device that is not one")


def to_dtype(text: str) -> torch.dtype:
    """Return a dtype by its short or long name, which some files quote. Raise Unreadable if there is none."""
    dtype = _NAMES.get(text) or _TORCH.get(text)
    if not isinstance(dtype, torch.dtype):
        raise Unreadable("a dtype that is not one")
    return dtype


def _tensor(values: list[Any], named: dict[str | None, Any]) -> TensorSpec:
    parts = [*values, *named.values()] if set(named) <= {"stride"} else []
    match parts:
        case [list() | tuple() as shape, torch.dtype() as dtype]:
            return TensorSpec.checked(shape, row_major_of(shape), dtype)
        case [list() | tuple() as shape, torch.dtype() as dtype, list() | tuple() as stride]:
            return TensorSpec.checked(shape, stride, dtype)
    raise Unreadable("a tensor that is not T(shape, dtype) or T(shape, dtype, strides)")


def row_major_of(shape: Any) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor. Raise Unreadable if `shape` holds a non-integer."""
    if not all(isinstance(n, int) for n in shape):
        raise Unreadable("a size or stride out of range")
    return row_major(shape)
