"""Fallback for calls whose dtype the CPU does not support: compute in a wider dtype and round the result.

Used when calls recorded on another device are replayed or executed on the CPU.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from traces.overloads import kind, written

_LACKING = re.compile(r"not implemented for '(\w+)'")  # the wording in ATen's error, with the dtype's C++ name
_FLOATS, _INTEGERS = (torch.float32,), (torch.int64, torch.float64)  # wider dtypes to try, in this order
_WIDER: dict[str, tuple[torch.dtype, tuple[torch.dtype, ...]]] = {
    "Half": (torch.float16, _FLOATS),
    "BFloat16": (torch.bfloat16, _FLOATS),
    "Float8_e4m3fn": (torch.float8_e4m3fn, _FLOATS),
    "Float8_e5m2": (torch.float8_e5m2, _FLOATS),
    "ComplexHalf": (torch.complex32, (torch.complex64,)),
    "Byte": (torch.uint8, _INTEGERS),
    "Char": (torch.int8, _INTEGERS),
    "Short": (torch.int16, _INTEGERS),
    "Int": (torch.int32, _INTEGERS),
    "Long": (torch.int64, (torch.float64,)),
}


def answer(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the operator on the CPU; if it lacks the dtype, compute in a wider one and round the result.

    Random operators are not widened: ATen supports every dtype in which any device draws. Raise the error that ATen
    raises if no wider dtype works either.
    """
    try:
        return op(*args, **kwargs)
    except (NotImplementedError, RuntimeError) as error:
        match = _LACKING.search(str(error))
        narrow, wider = _WIDER.get(match[1] if match and kind(op) != "random" else "", (torch.bool, ()))
        for wide in wider:
            try:
                # Dispatch modes must see one call, even if its computation takes several.
                with _disable_current_modes():
                    return _Widened(narrow, wide).answer(op, args, kwargs)
            except (NotImplementedError, RuntimeError):
                continue
        raise


class _Widened:
    """One call with every `narrow` tensor and dtype argument replaced by `wide`."""

    def __init__(self, narrow: torch.dtype, wide: torch.dtype) -> None:
        self._narrow, self._wide = narrow, wide
        self._originals: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # (original, copy) by id of the copy
        self._copies: dict[int, torch.Tensor] = {}  # by id of the original

    def answer(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = op(*self._widened(args), **{name: self._widened(value) for name, value in kwargs.items()})
        if written(op):
            for original, copy in self._originals.values():
                # Writing back an argument that was only read does not change it.
                original.resize_(copy.shape).copy_(copy)
        return self._narrowed(result)

    def _widened(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype is self._narrow:
            copy = self._copies.setdefault(id(value), value.to(self._wide))
            self._originals[id(copy)] = value, copy
            return copy
        if isinstance(value, list | tuple):
            return type(value)(map(self._widened, value))
        return self._wide if value is self._narrow else value

    def _narrowed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            original, _ = self._originals.get(id(value), (None, None))
            wide = value.dtype is self._wide
            return original if original is not None else value.to(self._narrow) if wide else value
        return type(value)(map(self._narrowed, value)) if isinstance(value, list | tuple) else value
