"""What makes calls alike: overload, shapes, strides, lazy bits, dtypes, devices and non-tensor arguments.

`token` is the fast form, a hashable key made for every call; `describe` is the readable form, made once a signature.
Both keep integers, booleans, strings and dtypes exact and put floats into a few buckets, since learning-rate schedules
and bias corrections change them at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch

from traces.lazy_bits import lazy_bits
from traces.text import bucket, row_major


def token(value: Any) -> Hashable:
    """A key that is equal for alike argument values, and for no others."""
    make = _TOKENS.get(type(value))
    if make is not None:
        return make(value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    return value if isinstance(value, _EXACT) else type(value).__name__


def call_token(op: Hashable, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> tuple[Hashable, ...]:
    """The key of a call. An argument that is the very object that the first one is, as in `x.add_(x)`, is marked.

    Every call of a program comes here: the usual types are spelled out, and a tensor's properties lie side by side.
    That is no less unique, since an operator's schema says which of its arguments are tensors.
    """
    first = args[0] if args else _SAME
    key: tuple[Any, ...] = (op,)
    for value in args:
        kind = type(value)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            if value is first and len(key) > 1:
                key += (_SAME,)
            elif value.layout is torch.strided:
                try:
                    key += (value.shape, value.stride(), value.dtype, value.is_cpu or value.device)
                    if lazy_bits(value):
                        key += (lazy_bits(value),)
                except RuntimeError:  # nested tensors call themselves strided and have no strides
                    key += (_tensor(value),)
            else:
                key += (_tensor(value),)
        elif kind is int or value is None:
            key += (value,)
        else:
            key += (token(value),)
    if kwargs:
        key += (tuple([(name, _SAME if value is first else token(value)) for name, value in kwargs.items()]),)
    return key


def _tensor(t: torch.Tensor) -> Hashable:
    if t.is_nested:
        return (t.layout, t.dtype, t.device)
    if t.layout is torch.strided:
        return (t.shape, t.stride(), t.dtype, t.device, lazy_bits(t))
    return (t.shape, t.layout, t.dtype, t.device, t.is_sparse and t.is_coalesced())


def _shape(t: torch.Tensor) -> tuple[int, ...] | None:
    return None if t.is_nested else tuple(t.shape)


def _sequence(values: list[Any] | tuple[Any, ...]) -> Hashable:
    return tuple([token(v) for v in values])


def _float(value: float) -> tuple[str, str]:
    return "float", bucket(value)


def _itself(value: Hashable) -> Hashable:
    return value


_SAME = object()
_EXACT = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_TOKENS: dict[type, Callable[[Any], Hashable]] = {
    torch.Tensor: _tensor,
    torch.nn.Parameter: _tensor,
    list: _sequence,
    tuple: _sequence,
    float: _float,
    bool: lambda value: ("bool", value),  # True == 1, but they promote differently
    int: _itself,
    str: _itself,
    type(None): _itself,
}


def describe(arguments: Mapping[str, Any]) -> str:
    """The arguments as text: `(self=float32[768, 128], mat2=float32[128, 384]:(1, 128))`."""
    first = next(iter(arguments.values()), None)
    parts = []
    for i, (name, value) in enumerate(arguments.items()):
        same = i > 0 and value is first and isinstance(value, torch.Tensor)
        parts.append(f"{name}={_text(value)}{' is ' + next(iter(arguments)) if same else ''}")
    return f"({', '.join(parts)})"


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _tensor_text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, float):
        return f"<{bucket(value)}>"
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    return str(value) if isinstance(value, _EXACT) else f"<{type(value).__name__}>"


def _tensor_text(t: torch.Tensor) -> str:
    dtype = str(t.dtype).removeprefix("torch.")
    device = "" if t.device.type == "cpu" else f"@{t.device}"
    if t.layout is not torch.strided or t.is_nested or t.is_mkldnn:
        layout = "nested" if t.is_nested else str(t.layout).removeprefix("torch.")
        coalesced = ", coalesced" if t.is_sparse and t.is_coalesced() else ""
        return f"{dtype}{list(_shape(t) or ())}<{layout}{coalesced}>{device}"
    strides = "" if t.stride() == row_major(t.shape) else f":{t.stride()}"
    bits = "".join(f"<{bit}>" for bit in sorted(lazy_bits(t)))
    return f"{dtype}{list(t.shape)}{strides}{bits}{device}"
