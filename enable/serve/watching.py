"""Calls as they are watched for a shortcut: what they allocate, launch and return."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from enable.serve.floats import plain
from enable.serve.modules import triton_is
from enable.serve.scratch import launcher
from enable.serve.shortcuts import (
    ALIGNMENT,
    ARGUMENTS,
    HOOKS,
    STREAM,
    TRIED,
    KernelLaunch,
    Numbered,
    Shortcut,
    SparseParts,
    View,
    allocator,
)
from traces.lazy_bits import lazy_bits
from traces.overloads import moves_data, name_of, written

Place: TypeAlias = tuple[int, int] | list[Any]  # whose pointer and bytes from it; of a tuple its elements' by number
_TRITON = ("triton.language.", "triton.runtime.", "triton.experimental.gluon.")  # whose types a kernel may be given
_PATCHED = threading.RLock()  # a wrapper may call what another registration serves


def watched(call: Callable[[], Any], tensors: list[torch.Tensor], many: bool = False) -> tuple[Any, Shortcut | None]:
    """The answer of a call with these tensors, and its shortcut if it has one.

    many: it stands for many calls, which may return parts of what they are given or make, and be given parts of one
    tensor; a shortcut tells how far these are apart.
    """
    if not triton_is(TRIED):
        return call(), None
    noted: list[tuple[Any, tuple[Any, ...]]] = []
    watch = _Watch()  # type: ignore[no-untyped-call]
    with watch, _noting(noted, watch):
        result = call()
    if watch.more or not _specialises_by_alignment():
        return result, None
    try:
        return result, _Follower(tensors, many).shortcut(noted, result)
    except _Unclear:
        return result, None


class _Unclear(Exception):
    """What a later call does cannot be told from this one."""


class _Follower:
    def __init__(self, given: list[torch.Tensor], many: bool) -> None:
        self._given, self._many = given, many
        self._storages = [_storage(t) for t in given]
        self._fresh: dict[int, int] = {}  # number of each storage that was made
        self._made: list[torch.Tensor] = []  # a tensor of each, which keeps it
        self._dtypes: dict[int, torch.dtype] = {}  # of what is returned in parts, by number

    def shortcut(self, noted: Sequence[tuple[Any, tuple[Any, ...]]], result: Any) -> Shortcut:
        aligned = [t.data_ptr() % ALIGNMENT == 0 for t in self._given]
        wanted = self._wanted(result)
        launches = tuple(self._launch(kernel, arguments) for kernel, arguments in noted)
        returned = list(_numbers(wanted))
        if len(returned) > len(set(returned)) and not self._many:
            raise _Unclear
        made = tuple(self._allocation(t, i, i in returned) for i, t in enumerate(self._made, len(self._given)))
        hooks = [arguments[place] for _, arguments in noted for place in HOOKS if arguments[place] is not None]
        if not all(hasattr(hook, "calls") for hook in hooks):
            raise _Unclear
        devices = {t.device for t in self._made}
        if len(devices) > 1:
            raise _Unclear
        empty = allocator(devices.pop().type if devices else "cpu")
        unlike = tuple({id(hook): hook for hook in hooks}.values())
        return Shortcut(aligned, unlike, made, empty, launches, wanted, self._apart())

    def _apart(self) -> tuple[tuple[int, int, int], ...]:
        """Of given tensors that are parts of one: the first, another, and how many bytes this is from it."""
        first: dict[int, int] = {}
        pairs = [(first.setdefault(storage, i), i) for i, storage in enumerate(self._storages)] if self._many else []
        return tuple((a, b, self._given[b].data_ptr() - self._given[a].data_ptr()) for a, b in pairs if a != b)

    def _launch(self, kernel: Any, arguments: tuple[Any, ...]) -> KernelLaunch:
        places = [(i, self._place(value)) for i, value in enumerate(arguments) if i >= ARGUMENTS]
        unfilled = [_without_tensors(value) for value in arguments]
        unfilled[STREAM] = None
        own = tuple((i, *place) for i, place in places if isinstance(place, tuple))
        return KernelLaunch(
            kernel,
            launcher(kernel),
            tuple(unfilled),
            own,
            tuple((i, place) for i, place in places if isinstance(place, list)),
        )

    def _place(self, value: Any) -> Place | None:
        if isinstance(value, torch.Tensor):
            return self._pointer(value)
        if isinstance(value, tuple):
            found = [(i, self._place(item)) for i, item in enumerate(value)]
            return [(i, place) for i, place in found if place is not None] or None
        known = isinstance(value, int | float | str | torch.dtype | None)
        if not known and not type(value).__module__.startswith(_TRITON):
            raise _Unclear
        return None

    def _pointer(self, t: torch.Tensor) -> tuple[int, int]:
        """Which tensor's pointer this one's is made of, and how."""
        mates = {id(g): i for i, (g, s) in enumerate(zip(self._given, self._storages, strict=True)) if s == _storage(t)}
        if id(t) in mates:
            return mates[id(t)], 0
        if len(mates) > 1 and not self._many:
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
            if type(indices) is type(values) is View:
                raise _Unclear  # perhaps an argument itself
            return SparseParts(indices, values, tuple(value.shape), value.is_coalesced())
        if isinstance(value, torch.Tensor) and lazy_bits(value) and not any(value is given for given in self._given):
            raise _Unclear  # memory alone does not say what its values are
        if isinstance(value, torch.Tensor) and self._many:
            return self._view(value)
        if isinstance(value, torch.Tensor):
            if _storage(value) in self._storages:
                return Numbered(self._identical(value))
            return Numbered(len(self._given) + self._number(value))
        if isinstance(value, tuple | list):
            return type(value)([self._wanted(item) for item in value])
        return value

    def _view(self, t: torch.Tensor) -> Numbered | View:
        """What many calls return: what they were given, or a part of that or of what they make."""
        for i, given in enumerate(self._given):
            if given is t:
                return Numbered(i)
        storage, size, offset = _storage(t), tuple(t.shape), int(t.storage_offset())
        if storage not in self._storages:
            number = len(self._given) + self._number(t)
            if self._dtypes.setdefault(number, t.dtype) != t.dtype:
                raise _Unclear
            return View(number, size, t.stride(), offset)
        number = self._storages.index(storage)
        given = self._given[number]
        if given.dtype != t.dtype or lazy_bits(given):
            raise _Unclear
        return View(number, size, t.stride(), offset - int(given.storage_offset()))

    def _part(self, t: torch.Tensor) -> Numbered | View:
        """Indices or values of a sparse result."""
        if _storage(t) not in self._storages:
            return Numbered(len(self._given) + self._number(t))
        number, _ = self._pointer(t)
        offset = int(t.storage_offset()) - int(self._given[number].storage_offset())
        return View(number, tuple(t.shape), t.stride(), offset)

    def _identical(self, value: torch.Tensor) -> int:
        for i, given in enumerate(self._given):
            if given is value:
                return i
        raise _Unclear  # a view of an argument

    def _allocation(self, t: torch.Tensor, number: int, returned: bool) -> tuple[Any, ...]:
        size = t.untyped_storage().nbytes()
        if dtype := self._dtypes.get(number):
            return (size // dtype.itemsize,), (1,), dtype
        if not returned:
            return (size,), (1,), torch.uint8
        spans = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1 if t.numel() else 0
        if type(t) is not torch.Tensor or t.storage_offset() or spans * t.itemsize != size:
            raise _Unclear
        return tuple(t.shape), t.stride(), t.dtype


def _numbers(wanted: Any) -> Iterator[int]:
    if type(wanted) is Numbered:
        yield wanted
    elif type(wanted) is View:
        yield wanted.number
    elif type(wanted) is SparseParts:
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
def _noting(noted: list[tuple[Any, tuple[Any, ...]]], watch: _Watch) -> Iterator[None]:
    """Note this thread's launches: of which kernel, and with what. Triton is given plain floats."""
    from triton.compiler import CompiledKernel
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    own, tuned, thread = CompiledKernel.run, Autotuner.run, threading.get_ident()
    begun = JITFunction.run

    def begin(function: Any, *args: Any, **kwargs: Any) -> Any:
        return begun(function, *map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        watch.more = True
        return tuned(tuner, *args, **kwargs)

    def run(kernel: Any) -> Callable[..., None]:
        launch = own.__get__(kernel)

        def noting(*given: Any) -> None:
            arguments = plain(given)
            if threading.get_ident() == thread:
                noted.append((kernel, arguments))
            launch(*arguments)

        return noting

    with _PATCHED:
        CompiledKernel.run, Autotuner.run, JITFunction.run = property(run), tune, begin
        try:
            yield
        finally:
            CompiledKernel.run, Autotuner.run, JITFunction.run = own, tuned, begun


def _specialises_by_alignment() -> bool:
    from triton.backends.compiler import BaseBackend
    from triton.compiler import make_backend
    from triton.runtime import driver

    backend = type(make_backend(driver.active.get_current_target()))
    return backend.get_tensor_specialization is BaseBackend.get_tensor_specialization
