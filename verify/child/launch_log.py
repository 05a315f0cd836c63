"""Record the launches of one call, so that another process can repeat them without the file's own Python.

Storages are numbered: the arguments' by their groups, others in first-use order. For the latter, the log has
their initial contents if these are short or one repeated value. An event is a launch, a fill or copy by ATen, or
a number read back. A tensor in an event is a strided window into a storage.
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

MAX_CONTENTS = 1 << 16  # bytes of a storage whose contents are recorded in full
MAX_EVENTS = 10_000
_PERIODS = (1, 2, 4, 8, 16)  # bytes in an element; a storage may contain one repeated element


class LaunchLog:
    """Log of one call; inactive unless the call is to be recorded."""

    def __init__(self) -> None:
        self.clear()

    def clear(self, memory: Sequence[Rebuilt] | None = None) -> None:
        """Clear the log; with `memory`, the groups of a call's arguments, record that call."""
        self.on = memory is not None
        self._memory = list(memory or ())
        # kept alive, so that no address is reused
        self._kept: list[Any] = [m.buffer.untyped_storage() for m in self._memory]
        self._numbers = {storage._cdata: number for number, storage in enumerate(self._kept)}
        self._contents: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def launch(self, kernel: Any, grid: Sequence[Any], arguments: Mapping[str, Any]) -> None:
        """Record a kernel launch; kernels are named by the role of their file and their own name."""
        encoded = {name: self._encoded(value) for name, value in arguments.items()}
        self._add({"launch": _named(kernel), "grid": [int(n) for n in grid], "arguments": encoded})

    def read(self, tensor: torch.Tensor, value: Any) -> None:
        """Record a number that the wrapper read from a tensor with one element."""
        real = value.real if isinstance(value, complex) else value
        self._add({"read": self._encoded(tensor), "value": self._encoded(real)})

    def calling(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Record a call to ATen that is about to run, and return its event."""
        named = {k: self._encoded(v) for k, v in kwargs.items()}
        event = {"call": name_of(func), "args": [self._encoded(v) for v in args], "kwargs": named, "makes": None}
        self._add(event)
        return event

    def called(self, event: dict[str, Any], result: Any) -> None:
        """Record the result of that call; an unknown storage is one that the call created."""
        if isinstance(result, torch.Tensor) and result.untyped_storage()._cdata not in self._numbers:
            event["makes"] = self._number(result.untyped_storage(), made=True)

    def report(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the whole log.

        For each group of `values` when packed, it has the storage, the first byte there, and its byte count.
        """
        spans = [span for span in lay_out(values)[1] if span is not None]
        locations = [(self._number(s.storage), s.lo, s.nbytes) for s in spans]
        answer = [[number, self._from_start(number, lo), nbytes] for number, lo, nbytes in locations]
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
        """Return a byte position in a storage, relative to the first byte of an argument."""
        return byte - self._memory[number].start if number < len(self._memory) else byte

    def _encoded(self, value: Any) -> Any:  # noqa: PLR0911 - one return per kind of value
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
            return {"list" if isinstance(value, list) else "tuple": [self._encoded(v) for v in value]}
        if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": "cpu"}
        return self._of_triton(value)

    def _of_triton(self, value: Any) -> Any:
        kind = type(value).__name__
        if kind == "constexpr":
            return self._encoded(value.value)
        if kind == "dtype":
            return {"tl": value.name}
        if kind == "TensorWrapper":
            return {"reinterpreted": [self._encoded(value.base), self._encoded(value.dtype)]}
        if kind == "TensorDescriptor":
            fields = (value.base, list(value.shape), list(value.strides), list(value.block_shape))
            return {"descriptor": [self._encoded(field) for field in fields]}
        return {"kernel": _named(value)}


def _named(kernel: Any) -> list[str]:
    return [str(kernel.fn.__globals__["__name__"]).removeprefix(MODULE), kernel.fn.__name__]


def _contents(storage: Any) -> str | None:
    """Return a storage's repeated element, or all of its contents, in hexadecimal; None if neither applies."""
    size = storage.nbytes()
    if not size:
        return ""
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(storage.data_ptr()))
    for period in _PERIODS:
        if size % period == 0 and (memory[period:] == memory[:-period]).all():
            return memory[:period].tobytes().hex()
    return memory.tobytes().hex() if size <= MAX_CONTENTS else None


launch_log = LaunchLog()
