"""What memory that nobody wrote holds: no single value, so that no answer is right because of it.

PyTorch's own fill (torch.utils.deterministic) makes it NaN, True or the largest integer, which may be the answer of an
element that a kernel skips. Here some elements of every allocation, drawn anew for each request, hold another value.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload

from traces.facts import tagged
from traces.overloads import base_name, uninitialised

OTHER = 0x5A  # of every byte of the elements that are changed; False for bool
_GROWING = tagged("growing")


class Fresh:
    """Off until `configure` is called."""

    def __init__(self) -> None:
        self._contents: int | None = None
        self._flipped = False

    def configure(self, contents: int, seed: int) -> None:
        """contents: decides which elements hold OTHER. Of an odd seed it is those that hold it of no even one."""
        self._contents = contents
        self.__dict__.pop("_random", None)
        self._flipped = seed % 2 == 1

    @cached_property
    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self._contents)

    def size(self, func: OpOverload, args: tuple[Any, ...]) -> int:
        """Bytes of memory that exist before a call of `func`, if it is one that makes memory larger."""
        return nbytes(args[0]) if base_name(func) in _GROWING else 0

    def fill(self, func: OpOverload, result: Any, first: int) -> None:
        """Change what a call of `func` allocated, from byte `first` on."""
        if self._contents is None or not uninitialised(func) or not isinstance(result, torch.Tensor):
            return
        size, length = result.element_size(), nbytes(result) - first
        if length < size:
            return
        chosen = self._random.integers(0, 2, length // size, dtype=np.uint8) != self._flipped
        value = 0 if result.dtype is torch.bool else OTHER
        if result.device.type != "cpu":
            memory = torch.empty(0, dtype=torch.uint8, device=result.device)
            memory.set_(result.untyped_storage(), first, (length // size, size), (size, 1))
            memory.masked_fill_(torch.from_numpy(chosen).to(result.device).unsqueeze(1), value)
            return
        address = result.untyped_storage().data_ptr() + first
        held = np.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(address))
        held[: length // size * size].reshape(-1, size)[chosen] = value


def nbytes(tensor: torch.Tensor) -> int:
    """Of its storage, if it has one."""
    has_none = tensor.layout is not torch.strided or tensor.device.type == "meta"
    return 0 if has_none else tensor.untyped_storage().nbytes()


fresh = Fresh()
