"""PyTorch's execution traces (Chakra, schema 1.1.1), as `torch.profiler.ExecutionTraceObserver` writes them.

They contain every operator with its children. The import takes the calls that a recording would contain: the outermost
operators that do not decompose. For example, `aten::linear` is replaced by `aten::t` and `aten::addmm`, and the calls
inside those are ignored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload

from traces.errors import TraceError, UserError
from traces.exchange.layout import TensorSpec, Unreadable, to_device
from traces.exchange.source import Call
from traces.overloads import resolve

MAX_FILE = 1 << 30  # bytes
_SCHEMA = re.compile(r"(\w+::\w+(?:\.\w+)?)\(")
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_CPP_DTYPES = {
    "unsigned char": torch.uint8,
    "signed char": torch.int8,
    "short": torch.int16,
    "short int": torch.int16,
    "int": torch.int32,
    "long": torch.int64,
    "long int": torch.int64,
    "long long": torch.int64,
    "float": torch.float32,
    "double": torch.float64,
    "bool": torch.bool,
    "unsigned short": torch.uint16,
    "short unsigned int": torch.uint16,
    "unsigned int": torch.uint32,
    "unsigned long": torch.uint64,
    "long unsigned int": torch.uint64,
    "c10::Half": torch.float16,
    "c10::BFloat16": torch.bfloat16,
    "c10::complex<c10::Half>": torch.complex32,
    "c10::complex<float>": torch.complex64,
    "c10::complex<double>": torch.complex128,
    "c10::Float8_e5m2": torch.float8_e5m2,
    "c10::Float8_e4m3fn": torch.float8_e4m3fn,
    "c10::Float8_e5m2fnuz": torch.float8_e5m2fnuz,
    "c10::Float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "c10::Float8_e8m0fnu": torch.float8_e8m0fnu,
}
# Values of C++ enumerators: c10/core/ScalarType.h, Layout.h, MemoryFormat.h. Quantised dtypes are left out.
_CODES: dict[str, dict[int, Any]] = {
    "ScalarType": {
        **dict(enumerate((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))),
        **dict(enumerate((torch.float16, torch.float32, torch.float64), start=5)),
        **dict(enumerate((torch.complex32, torch.complex64, torch.complex128, torch.bool), start=8)),
        15: torch.bfloat16,
        **dict(enumerate((torch.float8_e5m2, torch.float8_e4m3fn), start=23)),
        **dict(enumerate((torch.float8_e5m2fnuz, torch.float8_e4m3fnuz), start=25)),
        **dict(enumerate((torch.uint16, torch.uint32, torch.uint64), start=27)),
        44: torch.float8_e8m0fnu,
    },
    "Layout": {0: torch.strided, 1: torch.sparse_coo},
    "MemoryFormat": dict(
        enumerate((torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d))
    ),
}


def read(path: Path, lost: Counter[str]) -> Iterator[Call]:
    """Yield the calls of an execution trace in start order. Raise TraceError if the file is not one."""
    under: dict[int, tuple[bool, str]] = {}  # by node id: True inside an imported operator; phase
    for node in sorted(_nodes(path), key=lambda n: n["id"]):
        number, name = node["id"], str(node.get("name"))
        # A parent starts before its children, so its id is lower; a node with any other parent counts as a root.
        taken, phase = under.get(node.get("ctrl_deps", -1), (False, "forward"))
        phase = _phase(name) or phase
        overload = None if taken else _overload(node)
        if overload is not None and _decomposes(overload):
            lost["composite parents of calls that were taken over"] += 1
            overload = None
        under[number] = (taken or overload is not None, phase)
        if overload is not None:
            yield _call(overload, node, phase, lost)


def _nodes(path: Path) -> list[dict[str, Any]]:
    try:
        if path.stat().st_size > MAX_FILE:
            raise TraceError(f"{path}: over the limit of {MAX_FILE} bytes")
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise TraceError(f"{path}: cannot be read as JSON ({str(error)[:120]})") from error
    nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(nodes, list) or not str(document.get("schema")).startswith("1."):
        raise TraceError(
            f"{path}: not an execution trace in schema 1; write one with torch.profiler.ExecutionTraceObserver"
        )
    for i, node in enumerate(nodes):
        if not isinstance(node, dict) or not isinstance(node.get("id"), int):
            raise TraceError(f"{path}: nodes[{i}] has no id")
    return nodes


def _phase(name: str) -> str | None:
    if name.startswith("autograd::engine::evaluate_function"):
        return "backward"
    return "optimizer" if name.startswith("Optimizer.step#") else None


def _overload(node: dict[str, Any]) -> str | None:
    """Return the overload name from the node's schema; None for profiler markers and kernels."""
    attributes = node.get("attrs")
    for attribute in attributes if isinstance(attributes, list) else ():
        if isinstance(attribute, dict) and attribute.get("name") == "op_schema":
            match = _SCHEMA.match(str(attribute.get("value")))
            return match[1] if match else None
    return None


def _decomposes(overload: str) -> bool:
    try:
        op: OpOverload = resolve(overload)
    except UserError:
        return False  # counted later, as an unknown operator
    return bool(op.has_kernel_for_dispatch_key(_COMPOSITE))


def _call(overload: str, node: dict[str, Any], phase: str, lost: Counter[str]) -> Call:
    try:
        args = _arguments(node.get("inputs"))
    except Unreadable as error:
        return Call(overload, 1, node["id"], problem=str(error), phase=phase)
    if any(isinstance(a, TensorSpec) and not a.shape and a.device == "cpu" for a in args):
        lost["0-dim CPU tensors, which may have been Python numbers"] += 1
    return Call(overload, 1, node["id"], args, phase=phase, coerce=_coerce)


def _arguments(inputs: Any) -> tuple[Any, ...]:
    fields = inputs if isinstance(inputs, dict) else {}
    columns = [fields.get(name, 0) for name in ("values", "shapes", "strides", "types")]
    if not all(isinstance(c, list) and len(c) == len(columns[0]) for c in columns):
        raise Unreadable("inputs without values, shapes, strides and types")
    return tuple(_value(*row) for row in zip(*columns, strict=True))


def _value(value: Any, shape: Any, stride: Any, type_: Any) -> Any:
    if not isinstance(type_, str):
        raise Unreadable("an argument without a type")
    if type_ == "None":
        return None
    if type_.startswith("GenericList["):
        return _list(value, shape, stride, _inner(type_, "GenericList["))
    if type_.startswith("Tensor("):
        return _tensor(value, shape, stride, _inner(type_, "Tensor("))
    if not isinstance(value, bool | int | float | str):
        raise Unreadable(f"an argument of type {type_[:40]}")
    if type_ not in ("Int", "Double", "Bool", "String", "Device"):
        raise Unreadable(f"an argument of type {type_[:40]}")
    return float(value) if type_ == "Double" else value


def _inner(type_: str, start: str) -> str:
    return type_[len(start) : -1]


def _list(values: Any, shapes: Any, strides: Any, types: str) -> list[Any]:
    if not types:
        return []
    parts = re.split(r",(?![^\[(]*[\])])", types)  # split at commas outside brackets
    columns = (values, shapes, strides, parts)
    if not all(isinstance(c, list) and len(c) == len(parts) for c in columns):
        raise Unreadable("a list whose values, shapes, strides and types differ in length")
    return [_value(*row) for row in zip(*columns, strict=True)]


def _tensor(value: Any, shape: Any, stride: Any, dtype: str) -> TensorSpec | None:
    """Convert a tensor; `value` is [tensor, storage, offset in elements, elements, bytes each, device]."""
    if "uninitialized" in dtype:
        return None
    if dtype not in _CPP_DTYPES:
        raise Unreadable(f"a tensor of {dtype[:40]}")
    match value:
        case [int(), int() as storage, int() as offset, int(), int(), str() as device]:
            if not isinstance(shape, list) or not isinstance(stride, list):
                raise Unreadable("a tensor without shape and stride")
            return TensorSpec.checked(
                shape, stride, _CPP_DTYPES[dtype], offset=offset, storage=storage or None, device=str(to_device(device))
            )
    raise Unreadable("a tensor without storage and offset")


def _coerce(value: Any, type_: str) -> Any:
    """Convert an enumerator's integer to its torch value if the schema expects that enum."""
    for name, values in _CODES.items():
        if name in type_ and isinstance(value, int) and not isinstance(value, bool):
            if value not in values:
                raise Unreadable(f"{name} {value}")
            return values[value]
    return value
