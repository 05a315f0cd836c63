"""Fill uninitialised memory with mixed values, so that no answer is right by accident, and know what was written there.

PyTorch's own fill (torch.utils.deterministic) writes NaN, True or the largest integer. That may be the right
answer for an element that a kernel skips. Here some elements of every allocation, drawn anew for each request,
have another value.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload

from traces.facts import tagged
from traces.overloads import base_name, bind, uninitialised, written

OTHER = 0x5A  # value for each byte of the changed elements; False for bool
NOTHING, WRITTEN = 0, 0xFF
WORD = 16  # bytes, the largest element
_GROWING = tagged("growing")


class Fresh:
    """Filler for new allocations; inactive until `configure` is called."""

    def __init__(self) -> None:
        self._contents: int | None = None
        self._flipped = False
        self._written: dict[int, np.ndarray] = {}  # by storage address, a mark for each byte
        self._kept: list[torch.UntypedStorage] = []  # so that no later allocation has the same address
        self._before: np.ndarray | None = None  # the marks of a tensor whose memory is being enlarged

    def configure(self, contents: int, seed: int) -> None:
        """Activate the filler.

        Args:
            contents: Seed that decides which elements are changed.
            seed: An odd seed changes exactly the elements that an even one does not.
        """
        self._contents = contents
        self._written, self._kept = {}, []
        self.__dict__.pop("_random", None)
        self._flipped = seed % 2 == 1

    @cached_property
    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self._contents)

    def size(self, func: OpOverload, args: tuple[Any, ...]) -> int:
        """Return the bytes that exist before `func` is called if it enlarges a tensor's memory, else 0."""
        self._before = None
        if base_name(func) not in _GROWING:
            return 0
        size = nbytes(args[0])
        if size:  # the memory may move, and other memory have its address then
            self._before = self._written.pop(args[0].untyped_storage().data_ptr(), None)
        return size

    def fill(self, func: OpOverload, result: Any, first: int) -> None:
        """Change the memory that a call allocated, from byte `first` on."""
        if self._contents is None or not uninitialised(func) or not isinstance(result, torch.Tensor):
            return
        size, total = result.element_size(), nbytes(result)
        if total and result.device.type == "cpu":
            self._watch(result, first)
        length = total - first
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
        memory_bytes = np.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(address))
        memory_bytes[: length // size * size].reshape(-1, size)[chosen] = value

    def _watch(self, result: torch.Tensor, first: int) -> None:
        """Record that nothing has written `result` from byte `first` on."""
        storage = result.untyped_storage()
        written = np.full(-(-storage.nbytes() // WORD) * WORD, NOTHING, dtype=np.uint8)
        written[:first] = WRITTEN if self._before is None else self._before[:first]
        self._written[storage.data_ptr()] = written
        self._kept.append(storage)

    def written(self, storage: int) -> np.ndarray | None:
        """Return WRITTEN or NOTHING for each byte at this storage address, or None if all is defined."""
        return self._written.get(storage)

    def filled(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record that an operator in the wrapper has written all memory of the arguments that it writes to."""
        for name in written(func):
            value = bind(func, args, kwargs)[name]
            for t in value if isinstance(value, list | tuple) else [value]:
                if isinstance(t, torch.Tensor) and nbytes(t):
                    self._written.pop(t.untyped_storage().data_ptr(), None)


def nbytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's storage, or 0 if it has none."""
    has_none = tensor.layout is not torch.strided or tensor.device.type == "meta"
    return 0 if has_none else tensor.untyped_storage().nbytes()


fresh = Fresh()
