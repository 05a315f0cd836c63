"""Calls that the CPU lacks in a dtype and another device has: computed in a dtype that the CPU can."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from traces.overloads import kind, written

_LACKING = re.compile(r"not implemented for '(\w+)'")  # ATen's words, with the dtype as C++ calls it
_FLOATS, _INTEGERS = (torch.float32,), (torch.int64, torch.float64)  # what is tried, in this order
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
    """What the operator answers on the CPU; where it lacks the dtype, the answer in a wider one, rounded to that dtype.

    What draws numbers is left to ATen, which lacks it in dtypes that none draws in. Raises what ATen raises.
    """
    try:
        return op(*args, **kwargs)
    except (NotImplementedError, RuntimeError) as error:
        found = _LACKING.search(str(error))
        narrow, wider = _WIDER.get(found[1] if found and kind(op) != "random" else "", (torch.bool, ()))
        for wide in wider:
            try:
                with _disable_current_modes():  # it is one call, however it is computed
                    return _Widened(narrow, wide).answer(op, args, kwargs)
            except (NotImplementedError, RuntimeError):
                continue
        raise


class _Widened:
    """One call with another dtype in the place of one."""

    def __init__(self, narrow: torch.dtype, wide: torch.dtype) -> None:
        self._narrow, self._wide = narrow, wide
        self._originals: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # with their copies, by id of these
        self._copies: dict[int, torch.Tensor] = {}  # by id of the original

    def answer(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = op(*self._widened(args), **{name: self._widened(value) for name, value in kwargs.items()})
        if written(op):
            for original, copy in self._originals.values():
                original.resize_(copy.shape).copy_(copy)  # of arguments that are only read it is what they are
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
