"""Shortcuts: calls that differ in nothing but contents launch the same kernels with other pointers.

The first such call runs its wrapper and is watched: what it allocates, what it launches, what it returns. Later ones
allocate and launch likewise, without the wrapper's Python and without Triton's own way to a launch, which looks every
argument up again (triton/runtime/jit.py, JITFunction.run). A call that reads contents, computes with ATen, tunes itself
or mixes up what it is given has no shortcut; neither has one whose backend specialises kernels by more of a tensor than
the alignment of its pointer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from enable.serve.modules import triton_is
from traces.overloads import moves_data, name_of, written

MISS = object()  # a shortcut's answer to a call that it does not fit
ALIGNMENT = 16  # bytes; Triton compiles kernels for pointers that are multiples of it, and others for the others
_STREAM, _HOOKS, _ARGUMENTS = 3, (7, 8), 9  # places among the arguments of a compiled kernel's launcher
_TRIED = ("3.6", "3.9")  # versions of Triton in which these are the places; with others no call has a shortcut
_PATCHED = threading.RLock()  # a wrapper may call what another registration serves

Place: TypeAlias = tuple[int, int] | list[Any]  # whose pointer and bytes from it; of a tuple its elements' by number


def looked_at(op: int, args: Iterable[Any], kwargs: Mapping[str, Any]) -> tuple[Hashable, list[torch.Tensor]]:
    """A key of all that the launches of a call depend on but for pointers, None if there is none; and its tensors in
    their order, of a sparse one its indices and values.

    op: identifies the overload. Keys are equal for no calls that differ in it, in what tensors are, in which of them
    are the same object, or in another argument.
    """
    tensors: list[torch.Tensor] = []
    parts: list[Any] = [op, torch.get_default_dtype()]
    try:
        known = _added((*args, *kwargs.items()) if kwargs else args, tensors, parts)
    except RuntimeError:  # nested tensors have no strides
        return None, tensors
    if len(tensors) > 1 and len(set(map(id, tensors))) < len(tensors):
        seen: dict[int, int] = {}
        parts.extend(seen.setdefault(id(t), len(seen)) for t in tensors)
    return tuple(parts) if known else None, tensors


def _added(values: Iterable[Any], tensors: list[torch.Tensor], parts: list[Any]) -> bool:
    """Add to the tensors and parts of a key what these values are. Whether that is known of all."""
    for value in values:
        made = type(value)
        if made is torch.Tensor or made is torch.nn.Parameter:
            if value.layout is torch.strided:
                tensors.append(value)
                parts += (value.shape, value.stride(), value.dtype, value.device)
            elif value.layout is torch.sparse_coo:
                parts += (value.layout, value.shape, value.is_coalesced())
                _added((value._indices(), value._values()), tensors, parts)
            else:
                return False
        elif made is int or value is None or made is str:
            parts.append(value)
        elif made is float:
            parts += (float, value or str(value))  # -0.0 equals 0.0, and 2.0 equals 2
        elif made is list or made is tuple:
            parts.append(len(value))
            if not _added(value, tensors, parts):
                return False
        elif made is bool or made is complex:
            parts.append(str(value))
        elif made in _EXACT:
            parts.append(value)
        else:
            return False
    return True


_EXACT = (torch.dtype, torch.device, torch.layout, torch.memory_format)


@dataclass(frozen=True)
class _Launch:
    """run: a compiled kernel's launcher. arguments: all of its, with the stream and pointers still to be filled in.

    places: where a pointer goes, whose, and how many bytes from it. tuples: arguments that are tuples with such.
    """

    run: Callable[..., None]
    arguments: tuple[Any, ...]
    places: tuple[tuple[int, int, int], ...]
    tuples: tuple[tuple[int, list[Any]], ...]


@dataclass(frozen=True)
class Shortcut:
    """aligned: whether the pointer of each given tensor is a multiple of `ALIGNMENT`. hooks: Triton's, of launches.
    made: size, strides and dtype of each tensor to allocate. empty: allocates one on the current device. result: with
    numbers for tensors, of the given ones and then the made ones.
    """

    aligned: list[bool]
    hooks: tuple[Any, ...]
    made: tuple[tuple[Any, ...], ...]
    empty: Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor]
    launches: tuple[_Launch, ...]
    result: Any

    def run(self, tensors: list[torch.Tensor], index: int | None) -> Any:
        """The call's answer for these tensors on this device, or MISS, with nothing done."""
        if index is not None and index != torch.accelerator.current_device_index():
            with torch.accelerator.device_index(index):
                return self.run(tensors, index)
        pointers = [t.data_ptr() for t in tensors]
        if self.aligned != [not p % ALIGNMENT for p in pointers]:
            return MISS
        for hook in self.hooks:
            if hook.calls:
                return MISS  # a profiler wants to know the arguments of each launch
        made = [self.empty(*properties) for properties in self.made]
        pointers += [t.data_ptr() for t in made]
        stream = _streams()(index)
        for launch in self.launches:
            arguments = list(launch.arguments)
            arguments[_STREAM] = stream
            for i, source, offset in launch.places:
                arguments[i] = pointers[source] + offset
            for i, places in launch.tuples:
                arguments[i] = _filled(arguments[i], places, pointers)
            launch.run(*arguments)
        return _result(self.result, tensors, made)


def _filled(values: tuple[Any, ...], places: list[Any], pointers: list[int]) -> tuple[Any, ...]:
    filled = list(values)
    for i, place in places:
        own = type(place) is tuple
        filled[i] = pointers[place[0]] + place[1] if own else _filled(values[i], place, pointers)
    return tuple(filled)


class _Tensor(int):
    """In a result: the number of a tensor, first of the given ones, then of the made ones."""


@dataclass(frozen=True)
class _View:
    """In a result: a view of a given tensor. offset: from its first element, in elements."""

    number: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class _Sparse:
    """In a result: a sparse tensor. indices, values: _Tensor or _View."""

    indices: Any
    values: Any
    size: tuple[int, ...]
    coalesced: bool


def _result(wanted: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> Any:
    if type(wanted) is _Tensor:
        return given[wanted] if wanted < len(given) else made[wanted - len(given)]
    if type(wanted) is _View:
        of = given[wanted.number]
        return of.as_strided(wanted.size, wanted.stride, of.storage_offset() + wanted.offset)
    if type(wanted) is _Sparse:
        indices, values = (_result(part, given, made) for part in (wanted.indices, wanted.values))
        return torch.sparse_coo_tensor(
            indices, values, wanted.size, is_coalesced=wanted.coalesced, check_invariants=False
        )
    if type(wanted) is tuple or type(wanted) is list:
        return type(wanted)([_result(item, given, made) for item in wanted])
    return wanted


def watched(call: Callable[[], Any], tensors: list[torch.Tensor]) -> tuple[Any, Shortcut | None]:
    """The answer of a call with these tensors, and its shortcut if it has one."""
    if not triton_is(_TRIED):
        return call(), None
    noted: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
    watch = _Watch()  # type: ignore[no-untyped-call]
    with watch, _noting(noted, watch):
        result = call()
    if watch.more or not _specialises_by_alignment():
        return result, None
    try:
        return result, _Follower(tensors).shortcut(noted, result)
    except _Unclear:
        return result, None


class _Unclear(Exception):
    """What a later call does cannot be told from this one."""


class _Follower:
    def __init__(self, given: list[torch.Tensor]) -> None:
        self._given = given
        self._storages = [_storage(t) for t in given]
        self._fresh: dict[int, int] = {}  # number of each storage that was made
        self._made: list[torch.Tensor] = []  # a tensor of each, which keeps it

    def shortcut(self, noted: Sequence[tuple[Callable[..., None], tuple[Any, ...]]], result: Any) -> Shortcut:
        aligned = [t.data_ptr() % ALIGNMENT == 0 for t in self._given]
        wanted = self._wanted(result)
        launches = tuple(self._launch(run, arguments) for run, arguments in noted)
        returned = list(_numbers(wanted))
        if len(returned) > len(set(returned)):
            raise _Unclear
        made = tuple(self._allocation(t, len(self._given) + i in returned) for i, t in enumerate(self._made))
        hooks = [arguments[place] for _, arguments in noted for place in _HOOKS if arguments[place] is not None]
        if not all(hasattr(hook, "calls") for hook in hooks):
            raise _Unclear
        devices = {t.device for t in self._made}
        if len(devices) > 1:
            raise _Unclear
        empty = _empty(devices.pop().type if devices else "cpu")
        return Shortcut(aligned, tuple({id(hook): hook for hook in hooks}.values()), made, empty, launches, wanted)

    def _launch(self, run: Callable[..., None], arguments: tuple[Any, ...]) -> _Launch:
        places = [(i, self._place(value)) for i, value in enumerate(arguments) if i >= _ARGUMENTS]
        unfilled = [_without_tensors(value) for value in arguments]
        unfilled[_STREAM] = None
        own = tuple((i, *place) for i, place in places if isinstance(place, tuple))
        return _Launch(run, tuple(unfilled), own, tuple((i, place) for i, place in places if isinstance(place, list)))

    def _place(self, value: Any) -> Place | None:
        if isinstance(value, torch.Tensor):
            return self._pointer(value)
        if isinstance(value, tuple):
            found = [(i, self._place(item)) for i, item in enumerate(value)]
            return [(i, place) for i, place in found if place is not None] or None
        known = isinstance(value, int | float | str | torch.dtype | None)
        if not known and not type(value).__module__.startswith(("triton.language.", "triton.runtime.")):
            raise _Unclear
        return None

    def _pointer(self, t: torch.Tensor) -> tuple[int, int]:
        """Which tensor's pointer this one's is made of, and how."""
        mates = {id(g): i for i, (g, s) in enumerate(zip(self._given, self._storages, strict=True)) if s == _storage(t)}
        if id(t) in mates:
            return mates[id(t)], 0
        if len(mates) > 1:
            raise _Unclear  # of which it is a part, this time
        if not t.numel() and t.untyped_storage().nbytes():
            raise _Unclear  # it has no pointer
        if mates:
            number = next(iter(mates.values()))
            return number, t.data_ptr() - self._given[number].data_ptr()
        return len(self._given) + self._number(t), t.data_ptr() - t.untyped_storage().data_ptr()

    def _number(self, t: torch.Tensor) -> int:
        storage = _storage(t)
        if storage not in self._fresh:
            self._fresh[storage] = len(self._made)
            self._made.append(t)
        return self._fresh[storage]

    def _wanted(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo:
            indices, values = self._part(value._indices()), self._part(value._values())
            if type(indices) is type(values) is _View:
                raise _Unclear  # perhaps an argument itself
            return _Sparse(indices, values, tuple(value.shape), value.is_coalesced())
        if isinstance(value, torch.Tensor):
            if _storage(value) in self._storages:
                return _Tensor(self._identical(value))
            return _Tensor(len(self._given) + self._number(value))
        if isinstance(value, tuple | list):
            return type(value)([self._wanted(item) for item in value])
        return value

    def _part(self, t: torch.Tensor) -> _Tensor | _View:
        """Indices or values of a sparse result."""
        if _storage(t) not in self._storages:
            return _Tensor(len(self._given) + self._number(t))
        number, _ = self._pointer(t)
        offset = int(t.storage_offset()) - int(self._given[number].storage_offset())
        return _View(number, tuple(t.shape), t.stride(), offset)

    def _identical(self, value: torch.Tensor) -> int:
        for i, given in enumerate(self._given):
            if given is value:
                return i
        raise _Unclear  # a view of an argument

    def _allocation(self, t: torch.Tensor, returned: bool) -> tuple[Any, ...]:
        size = t.untyped_storage().nbytes()
        if not returned:
            return (size,), (1,), torch.uint8
        spans = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1 if t.numel() else 0
        if type(t) is not torch.Tensor or t.storage_offset() or spans * t.itemsize != size:
            raise _Unclear
        return tuple(t.shape), t.stride(), t.dtype


def _numbers(wanted: Any) -> Iterator[int]:
    if type(wanted) is _Tensor:
        yield wanted
    elif type(wanted) is _Sparse:
        yield from _numbers((wanted.indices, wanted.values))
    elif isinstance(wanted, tuple | list):
        for item in wanted:
            yield from _numbers(item)


def _without_tensors(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return None
    return tuple(map(_without_tensors, value)) if type(value) is tuple else value


def _storage(t: torch.Tensor) -> int:
    if t.layout is not torch.strided:
        raise _Unclear
    return int(t.untyped_storage()._cdata)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """more: whether ATen did anything but allocate and view, or launches were for tuning."""

    more = False

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch._C._dispatch_has_kernel_for_dispatch_key(name_of(func), "CompositeImplicitAutograd"):
            with self:  # below autograd these come here whole, such as broadcast_tensors
                return func.decompose(*args, **(kwargs or {}))
        if moves_data(func) or written(func):
            self.more = True
        return func(*args, **(kwargs or {}))


@contextmanager
def _noting(noted: list[tuple[Callable[..., None], tuple[Any, ...]]], watch: _Watch) -> Iterator[None]:
    """Note this thread's launches: what is called, and with what."""
    from triton.compiler import CompiledKernel
    from triton.runtime.autotuner import Autotuner

    own, tuned, thread = CompiledKernel.run, Autotuner.run, threading.get_ident()

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        watch.more = True
        return tuned(tuner, *args, **kwargs)

    def run(kernel: Any) -> Callable[..., None]:
        launch = own.__get__(kernel)

        def noting(*arguments: Any) -> None:
            if threading.get_ident() == thread:
                noted.append((launch, arguments))
            launch(*arguments)

        return noting

    with _PATCHED:
        CompiledKernel.run, Autotuner.run = property(run), tune
        try:
            yield
        finally:
            CompiledKernel.run, Autotuner.run = own, tuned


def _specialises_by_alignment() -> bool:
    from triton.backends.compiler import BaseBackend
    from triton.compiler import make_backend
    from triton.runtime import driver

    backend = type(make_backend(driver.active.get_current_target()))
    return backend.get_tensor_specialization is BaseBackend.get_tensor_specialization


@cache
def _empty(device: str) -> Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor]:
    """Allocates on the current device of this type; past the dispatcher where PyTorch has that for its own compiler."""
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{device}", None)
    return quick or (lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device))


@cache
def _streams() -> Callable[[int | None], Any]:
    """Tells the current stream of a device, by default of the current one."""
    from triton.runtime import driver

    stream, device = driver.active.get_current_stream, driver.active.get_current_device
    return lambda index: stream(device() if index is None else index)
