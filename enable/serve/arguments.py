"""The arguments of a call, as far as they decide whether a kernel serves it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map

from traces.overloads import base_name, bind, name_of, written

ELSEWHERE = "arguments on another device"
SPARSE = "sparse_coo"  # stands among the dtypes for calls with such a tensor, as in verdicts
SEVERAL = "several sparse tensors"
WRITTEN = "a sparse tensor that is written"  # a kernel makes new ones, and cannot put other parts into it
_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm"})


def refusal(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """The error that ATen raises for such arguments, whatever they contain, if it does: kernels do not check them.

    Asked of ATen's functions for device `meta`; what has none, or asks for contents, is taken to be right. Those of
    matrix products take any dtypes.
    """
    if SPARSE in Seen("", op, args, kwargs).dtypes:
        return None
    dtypes = {value.dtype for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)}
    if base_name(op) in _PRODUCTS and len(dtypes) > 1:
        return RuntimeError(f"{name_of(op)}: matrices of {', '.join(sorted(map(_dtype_name, dtypes)))}")
    try:
        op(*tree_map(_on_meta, args), **tree_map(_on_meta, kwargs))
    except NotImplementedError:
        return None
    except (RuntimeError, IndexError, ValueError, TypeError, AssertionError) as error:
        return None if "meta" in str(error) else error
    return None


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, torch.device):
        return torch.device("meta")
    return None if isinstance(value, torch.Generator) else value


class Seen:
    """What decides whether a call is served: where its arguments are, and which floating dtypes they name.

    number: the first argument is a tensor by the schema, and here a number. Kernels know that of later operands alone.
    """

    def __init__(self, device: str, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._device = device
        self.number = bool(args) and is_number(args[0]) and 0 in tensor_places(op)
        self.dtypes: set[str] = set()
        self.elsewhere = ""
        self.index: int | None = None  # of the device
        self._sparse = 0
        self._look(args)
        self._look(kwargs.values())
        if self._sparse > 1:
            self.elsewhere = SEVERAL
        elif self._sparse and any(map(_is_sparse, map(bind(op, args, kwargs).get, written(op)))):
            self.elsewhere = WRITTEN

    def _look(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                self._device_is(value.device)
                self._dtype_is(value.dtype)
                if value.layout is torch.sparse_coo:
                    self.dtypes.add(SPARSE)
                    self._sparse += 1
                elif value.layout is not torch.strided:
                    self.elsewhere = f"arguments of layout {_dtype_name(value.layout)}"
            elif isinstance(value, list | tuple):
                self._look(value)
            elif isinstance(value, torch.device):
                self._device_is(value)
            elif isinstance(value, torch.dtype):
                self._dtype_is(value)
            elif isinstance(value, complex):
                self.dtypes.add("complex")

    def _device_is(self, device: torch.device) -> None:
        other = device.index is not None and self.index not in (None, device.index)
        if device.type != self._device or other:
            self.elsewhere = ELSEWHERE
        self.index = device.index if self.index is None else self.index

    def _dtype_is(self, dtype: torch.dtype) -> None:
        if dtype.is_floating_point or dtype.is_complex:
            self.dtypes.add(_dtype_name(dtype))


def _is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex)


@cache
def tensor_places(op: OpOverload) -> frozenset[int]:
    """Positions of the arguments that are tensors, or may be."""
    types = enumerate(str(a.type) for a in op._schema.arguments)
    return frozenset(i for i, text in types if text in ("Tensor", "Optional[Tensor]"))


@cache
def _dtype_name(dtype: torch.dtype | torch.layout) -> str:
    return str(dtype).removeprefix("torch.")
