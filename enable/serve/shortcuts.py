"""Shortcuts: launch the same kernels with other pointers for calls that differ only in tensor contents.

The first such call runs its wrapper and is watched: its allocations, its launches and its result. Later calls allocate
and launch likewise. They skip the wrapper's Python and Triton's own launch path, which looks up every argument again
(triton/runtime/jit.py, JITFunction.run). A call has no shortcut if it reads contents, computes with ATen, autotunes, or
aliases its arguments in a way that one run does not determine. There are also none if the backend specializes kernels
by more than the pointer's alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import torch

from enable.serve.overlap import Footprint
from traces.call_keys import read_call

MISS = object()  # a shortcut's answer if it does not fit the call
ALIGNMENT = 16  # bytes; Triton compiles separate kernels for pointers that are multiples of it
STREAM, FUNCTION, HOOKS, ARGUMENTS = 3, 4, (7, 8), 9  # positions among the arguments of a compiled kernel's launcher
TRIED = ("3.6", "3.9")  # Triton versions with these positions; other versions get no shortcuts

# (tensor number, byte offset) for a pointer; for a tuple, a list of (element number, place). Floats have negative
# numbers: the last one is -1.
Place: TypeAlias = tuple[int, int] | list[Any]


class Looked(NamedTuple):
    """The keys and contents of a call.

    Attributes:
        key: Everything that determines the call's launches except pointers; None if the call has no key.
        kind: The same for all calls that differ only in floats.
        tensors: Tensors in order; a sparse tensor contributes its indices and values.
        floats: Floats in order.
    """

    key: Hashable
    kind: Hashable
    tensors: list[torch.Tensor]
    floats: tuple[float, ...]

    def drawing(self, seed: int, number: int) -> Looked:
        """Return the call with random state; `number` is unique for this seed and counts as the last float."""
        return self._replace(key=(self.key, seed, number), kind=(self.kind, seed), floats=(*self.floats, number))


def looked_at(op: int, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Looked:
    """Return a call's keys, tensors and floats.

    Equal keys imply the same overload `op`, equal tensor properties, the same object identities among the tensors, and
    equal other arguments.
    """
    head = op, torch.get_default_dtype()
    kind, tensors, values, exact = read_call(args, kwargs, *head)
    if not exact and any(t.layout is torch.sparse_coo for t in tensors):
        dense = {name: _in_parts(value) for name, value in kwargs.items()}
        kind, tensors, values, exact = read_call(map(_in_parts, args), dense, *head)
    floats = tuple(values)
    if not exact:
        return Looked(None, None, tensors, ())
    # -0.0 equals 0.0, so zeros are keyed by their text
    return Looked((kind, *[f or str(f) for f in floats]) if floats else kind, kind, tensors, floats)


def _in_parts(value: Any) -> Any:
    """Return a value with each COO tensor replaced by the strided tensors that hold its contents."""
    if isinstance(value, list | tuple):
        return type(value)(map(_in_parts, value))
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.sparse_coo:
        return [value.layout, list(value.shape), value.is_coalesced(), value._indices(), value._values()]
    return value


@dataclass(frozen=True)
class KernelLaunch:
    """One launch of a compiled kernel.

    Attributes:
        kernel: The kernel as Triton compiled it.
        run: Its launcher.
        arguments: The launcher's arguments, with None for the stream and for tensors.
        places: For each pointer: argument position, tensor number, byte offset.
        tuples: Positions of tuple arguments that contain pointers, with the places inside.
    """

    kernel: Any
    run: Callable[..., None]
    arguments: tuple[Any, ...]
    places: tuple[tuple[int, int, int], ...]
    tuples: tuple[tuple[int, list[Any]], ...]


@dataclass(frozen=True)
class Shortcut:
    """The allocations and launches that answer a call.

    Attributes:
        aligned: For each given tensor, True if its pointer is a multiple of `ALIGNMENT`.
        hooks: Triton's launch hooks.
        made: Size, strides and dtype of each tensor to allocate.
        empty: Allocates such a tensor on the current device.
        launches: Launches in order.
        result: The result with numbers for tensors; the given tensors come first, then the allocated ones.
        apart: Pairs of given tensors in one storage, with the bytes from the first to the second.
        footprint: Footprint of the given tensors if the call writes to any.
    """

    aligned: list[bool]
    hooks: tuple[Any, ...]
    made: tuple[tuple[Any, ...], ...]
    empty: Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor]
    launches: tuple[KernelLaunch, ...]
    result: Any
    apart: tuple[tuple[int, int, int], ...] = ()
    footprint: Footprint | None = None

    def run(self, tensors: list[torch.Tensor], index: int | None, floats: tuple[float, ...] = ()) -> Any:
        """Return the result for these tensors on this device, or MISS with nothing done.

        `floats` are the call's floats if the shortcut takes them.
        """
        if index is not None and index != torch.accelerator.current_device_index():
            with torch.accelerator.device_index(index):
                return self.run(tensors, index, floats)
        pointers: list[Any] = [t.data_ptr() for t in tensors]
        if self.aligned != [not p % ALIGNMENT for p in pointers]:
            return MISS
        if any(pointers[b] - pointers[a] != bytes_ for a, b, bytes_ in self.apart):
            return MISS
        if self.footprint is not None and self.footprint.may_clash(pointers):
            return MISS
        for hook in self.hooks:
            if hook.calls:
                return MISS  # a profiler expects the launch arguments
        allocated = [self.empty(*properties) for properties in self.made]
        pointers += [t.data_ptr() for t in allocated]
        pointers += floats
        stream = _streams()(index)
        for launch in self.launches:
            arguments = list(launch.arguments)
            arguments[STREAM] = stream
            for i, source, offset in launch.places:
                arguments[i] = pointers[source] + offset
            for i, places in launch.tuples:
                arguments[i] = _filled(arguments[i], places, pointers)
            launch.run(*arguments)
        return _result(self.result, tensors, allocated)


def _filled(values: tuple[Any, ...], places: list[Any], pointers: list[Any]) -> tuple[Any, ...]:
    """Return a tuple argument with pointers filled in."""
    filled = list(values)
    for i, position in places:
        is_pointer = type(position) is tuple
        filled[i] = pointers[position[0]] + position[1] if is_pointer else _filled(values[i], position, pointers)
    return tuple(filled)


class Numbered(int):
    """In a result: a tensor's number, counted over the given tensors and then the allocated ones."""


@dataclass(frozen=True)
class View:
    """In a result: a view of the tensor with this number. `offset` counts elements from the tensor's first element."""

    number: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class SparseParts:
    """In a result: a sparse tensor. `indices` and `values` are Numbered or View."""

    indices: Any
    values: Any
    size: tuple[int, ...]
    coalesced: bool


def _result(wanted: Any, inputs: list[torch.Tensor], made: list[torch.Tensor]) -> Any:
    """Return the result with tensors in place of their numbers."""
    if type(wanted) is Numbered:
        return inputs[wanted] if wanted < len(inputs) else made[wanted - len(inputs)]
    if type(wanted) is View:
        base = inputs[wanted.number] if wanted.number < len(inputs) else made[wanted.number - len(inputs)]
        return base.as_strided(wanted.size, wanted.stride, base.storage_offset() + wanted.offset)
    if type(wanted) is SparseParts:
        indices, values = (_result(part, inputs, made) for part in (wanted.indices, wanted.values))
        return torch.sparse_coo_tensor(
            indices, values, wanted.size, is_coalesced=wanted.coalesced, check_invariants=False
        )
    if type(wanted) is tuple or type(wanted) is list:
        return type(wanted)([_result(item, inputs, made) for item in wanted])
    return wanted


@cache
def allocator(device: str) -> Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor]:
    """Return a function that allocates on the current device of this type.

    It bypasses the dispatcher if PyTorch provides such a function for its own compiler.
    """
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{device}", None)
    return quick or (lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device))


@cache
def _streams() -> Callable[[int | None], Any]:
    """Return a function that maps a device index to its current stream; None means the current device."""
    from triton.runtime import driver

    stream, device = driver.active.get_current_stream, driver.active.get_current_device
    return lambda index: stream(device() if index is None else index)
