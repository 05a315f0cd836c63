"""What one call launches, told so that another process can launch it again without the file's own Python.

Storages are numbered: those of the arguments by their groups, others in the order in which they are first met. Of
these it is told what they hold when they are met, where that is one value throughout or short. An event is a launch, a
fill or copy that ATen was asked for, or a number read back; a tensor in it is a strided window onto a storage.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from traces.overloads import name_of
from traces.values import Rebuilt, lay_out
from verify.child.loading import MODULE

MAX_CONTENTS = 1 << 16  # bytes of a storage that are told as they are
MAX_EVENTS = 10_000
_PERIODS = (1, 2, 4, 8, 16)  # bytes of an element, which may be all that a storage holds


class LaunchLog:
    """Of one call; off but for those that are asked for."""

    def __init__(self) -> None:
        self.clear()

    def clear(self, memory: Sequence[Rebuilt] | None = None) -> None:
        """Forget the last call. memory: the groups of the arguments of one that is to be told."""
        self.on = memory is not None
        self._memory = list(memory or ())
        self._kept: list[Any] = [m.buffer.untyped_storage() for m in self._memory]  # so that no address is taken again
        self._numbers = {storage._cdata: number for number, storage in enumerate(self._kept)}
        self._contents: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def launch(self, kernel: Any, grid: Sequence[Any], arguments: Mapping[str, Any]) -> None:
        """A launch of a kernel, which is named by its file's role and its own name."""
        told = {name: self._told(value) for name, value in arguments.items()}
        self._add({"launch": _named(kernel), "grid": [int(n) for n in grid], "arguments": told})

    def read(self, tensor: torch.Tensor, value: Any) -> None:
        """A number that the wrapper was given for that of a tensor of one element."""
        real = value.real if isinstance(value, complex) else value
        self._add({"read": self._told(tensor), "value": self._told(real)})

    def calling(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """A call of ATen's that is about to run."""
        named = {k: self._told(v) for k, v in kwargs.items()}
        event = {"call": name_of(func), "args": [self._told(v) for v in args], "kwargs": named, "makes": None}
        self._add(event)
        return event

    def called(self, event: dict[str, Any], result: Any) -> None:
        """What that call returned, which is a storage of its own making where nobody has met it."""
        if isinstance(result, torch.Tensor) and result.untyped_storage()._cdata not in self._numbers:
            event["makes"] = self._number(result.untyped_storage(), made=True)

    def told(self, values: dict[str, Any]) -> dict[str, Any]:
        """All of it, and for each group of `values`, packed, its storage, first byte there and bytes."""
        spans = [span for span in lay_out(values)[1] if span is not None]
        places = [(self._number(s.storage), s.lo, s.nbytes) for s in spans]
        answer = [[number, self._from_start(number, lo), nbytes] for number, lo, nbytes in places]
        return {"storages": self._contents, "events": self._events, "answer": answer}

    def _add(self, event: dict[str, Any]) -> None:
        if len(self._events) >= MAX_EVENTS:
            raise ValueError(f"more than {MAX_EVENTS} launches in one call")
        self._events.append(event)

    def _number(self, storage: Any, made: bool = False) -> int:
        if storage._cdata not in self._numbers:
            self._numbers[storage._cdata] = len(self._kept)
            self._kept.append(storage)
            self._contents.append({"nbytes": storage.nbytes(), "holds": "" if made else _contents(storage)})
        return self._numbers[storage._cdata]

    def _from_start(self, number: int, byte: int) -> int:
        """A byte of a storage, counted from where an argument's own begin."""
        return byte - self._memory[number].start if number < len(self._memory) else byte

    def _told(self, value: Any) -> Any:  # noqa: PLR0911 - one return per kind of value
        if isinstance(value, torch.Tensor):
            number = self._number(value.untyped_storage())
            first = self._from_start(number, int(value.storage_offset()) * value.element_size())
            dtype = str(value.dtype).removeprefix("torch.")
            return {"tensor": [number, first, dtype, list(value.shape), list(value.stride())]}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, list | tuple):
            return {"list" if isinstance(value, list) else "tuple": [self._told(v) for v in value]}
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": "cpu"}
        return self._of_triton(value)

    def _of_triton(self, value: Any) -> Any:
        kind = type(value).__name__
        if kind == "constexpr":
            return self._told(value.value)
        if kind == "dtype":
            return {"tl": value.name}
        if kind == "TensorWrapper":
            return {"reinterpreted": [self._told(value.base), self._told(value.dtype)]}
        if kind == "TensorDescriptor":
            fields = (value.base, list(value.shape), list(value.strides), list(value.block_shape))
            return {"descriptor": [self._told(field) for field in fields]}
        return {"kernel": _named(value)}


def _named(kernel: Any) -> list[str]:
    return [str(kernel.fn.__globals__["__name__"]).removeprefix(MODULE), kernel.fn.__name__]


def _contents(storage: Any) -> str | None:
    """What a storage holds throughout, or all that it holds, in hexadecimal; None for what is neither."""
    size = storage.nbytes()
    if not size:
        return ""
    held = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(storage.data_ptr()))
    for period in _PERIODS:
        if size % period == 0 and (held[period:] == held[:-period]).all():
            return held[:period].tobytes().hex()
    return held.tobytes().hex() if size <= MAX_CONTENTS else None


launch_log = LaunchLog()
