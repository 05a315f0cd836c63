"""Shortcuts: calls that differ in nothing but contents launch the same kernels with other pointers.

The first such call runs its wrapper and is watched: what it allocates, what it launches, what it returns. Later ones
allocate and launch likewise, without the wrapper's Python and without Triton's own way to a launch, which looks every
argument up again (triton/runtime/jit.py, JITFunction.run). A call that reads contents, computes with ATen, tunes itself
or mixes up what it is given has no shortcut; neither has one whose backend specialises kernels by more of a tensor than
the alignment of its pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import torch

from enable.serve.overlap import Footprint
from traces.call_keys import read_call

MISS = object()  # a shortcut's answer to a call that it does not fit
ALIGNMENT = 16  # bytes; Triton compiles kernels for pointers that are multiples of it, and others for the others
STREAM, FUNCTION, HOOKS, ARGUMENTS = 3, 4, (7, 8), 9  # places among the arguments of a compiled kernel's launcher
TRIED = ("3.6", "3.9")  # versions of Triton in which these are the places; with others no call has a shortcut

# Whose pointer goes there, and how many bytes from it; of a tuple its elements' by number. Floats have numbers from the
# end: that of the last is -1.
Place: TypeAlias = tuple[int, int] | list[Any]


class Looked(NamedTuple):
    """key: of all that the launches of a call depend on but for pointers, None if there is none. kind: the same of all
    calls that differ in nothing but floats. tensors: in their order, of a sparse one its indices and values. floats: in
    theirs."""

    key: Hashable
    kind: Hashable
    tensors: list[torch.Tensor]
    floats: tuple[float, ...]

    def drawing(self, seed: int, number: int) -> Looked:
        """The same of a call that draws: `number` is of no other call with this seed, and counts as its last float."""
        return self._replace(key=(self.key, seed, number), kind=(self.kind, seed), floats=(*self.floats, number))


def looked_at(op: int, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Looked:
    """What a call is to its shortcuts.

    op: identifies the overload. Keys are equal for no calls that differ in it, in what tensors are, in which of them
    are the same object, or in another argument.
    """
    head = op, torch.get_default_dtype()
    kind, tensors, values, exact = read_call(args, kwargs, *head)
    if not exact and any(t.layout is torch.sparse_coo for t in tensors):
        dense = {name: _in_parts(value) for name, value in kwargs.items()}
        kind, tensors, values, exact = read_call(map(_in_parts, args), dense, *head)
    floats = tuple(values)
    if not exact:
        return Looked(None, None, tensors, ())
    # -0.0 equals 0.0
    return Looked((kind, *[f or str(f) for f in floats]) if floats else kind, kind, tensors, floats)


def _in_parts(value: Any) -> Any:
    """Return a value with the strided tensors that hold its contents in place of each COO tensor."""
    if isinstance(value, list | tuple):
        return type(value)(map(_in_parts, value))
    if type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.sparse_coo:
        return [value.layout, list(value.shape), value.is_coalesced(), value._indices(), value._values()]
    return value


@dataclass(frozen=True)
class KernelLaunch:
    """kernel: as Triton compiled it. run: its launcher. arguments: all of that, but for the stream and pointers.

    places: where a pointer goes, whose, and how many bytes from it. tuples: arguments that are tuples with such.
    """

    kernel: Any
    run: Callable[..., None]
    arguments: tuple[Any, ...]
    places: tuple[tuple[int, int, int], ...]
    tuples: tuple[tuple[int, list[Any]], ...]


@dataclass(frozen=True)
class Shortcut:
    """aligned: whether the pointer of each given tensor is a multiple of `ALIGNMENT`. hooks: Triton's, of launches.
    made: size, strides and dtype of each tensor to allocate. empty: allocates one on the current device. result: with
    numbers for tensors, of the given ones and then the made ones. apart: given tensors that are parts of one, and how
    many bytes the second is from the first. footprint: that of the given tensors, if the call writes to any.
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
        """The call's answer for these tensors on this device, or MISS, with nothing done. floats: of a call whose
        shortcut takes them."""
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
                return MISS  # a profiler wants to know the arguments of each launch
        made = [self.empty(*properties) for properties in self.made]
        pointers += [t.data_ptr() for t in made]
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
        return _result(self.result, tensors, made)


def _filled(values: tuple[Any, ...], places: list[Any], pointers: list[Any]) -> tuple[Any, ...]:
    filled = list(values)
    for i, place in places:
        own = type(place) is tuple
        filled[i] = pointers[place[0]] + place[1] if own else _filled(values[i], place, pointers)
    return tuple(filled)


class Numbered(int):
    """In a result: the number of a tensor, first of the given ones, then of the made ones."""


@dataclass(frozen=True)
class View:
    """In a result: a view of a tensor with this number. offset: from its first element, in elements."""

    number: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class SparseParts:
    """In a result: a sparse tensor. indices, values: Numbered or View."""

    indices: Any
    values: Any
    size: tuple[int, ...]
    coalesced: bool


def _result(wanted: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> Any:
    if type(wanted) is Numbered:
        return given[wanted] if wanted < len(given) else made[wanted - len(given)]
    if type(wanted) is View:
        of = given[wanted.number] if wanted.number < len(given) else made[wanted.number - len(given)]
        return of.as_strided(wanted.size, wanted.stride, of.storage_offset() + wanted.offset)
    if type(wanted) is SparseParts:
        indices, values = (_result(part, given, made) for part in (wanted.indices, wanted.values))
        return torch.sparse_coo_tensor(
            indices, values, wanted.size, is_coalesced=wanted.coalesced, check_invariants=False
        )
    if type(wanted) is tuple or type(wanted) is list:
        return type(wanted)([_result(item, given, made) for item in wanted])
    return wanted


@cache
def allocator(device: str) -> Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor]:
    """Allocates on the current device of this type; past the dispatcher where PyTorch has that for its own compiler."""
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{device}", None)
    return quick or (lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device))


@cache
def _streams() -> Callable[[int | None], Any]:
    """Tells the current stream of a device, by default of the current one."""
    from triton.runtime import driver

    stream, device = driver.active.get_current_stream, driver.active.get_current_device
    return lambda index: stream(device() if index is None else index)
