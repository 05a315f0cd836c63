"""Watch a call and record its allocations, launches and result as a shortcut."""

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

Place: TypeAlias = tuple[int, int] | list[Any]  # (tensor number, byte offset), or a list of (element number, place)
# modules whose types a kernel may receive
_TRITON = ("triton.language.", "triton.runtime.", "triton.experimental.gluon.")
_PATCHED = threading.RLock()  # reentrant: a wrapper may call an operator that another registration serves


def watched(call: Callable[[], Any], tensors: list[torch.Tensor], many: bool = False) -> tuple[Any, Shortcut | None]:
    """Run a call with these tensors; return its result and its shortcut, or None if it has none.

    If `many` is set, the shortcut stands for many calls. They may return parts of tensors that they receive or
    allocate, and receive parts of one tensor. The shortcut then records the distances between these parts.
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
    """Raised if this run does not determine the launches of a later call."""


class _Follower:
    """Converts recorded launches to a shortcut by tracing each pointer to a given or an allocated tensor."""

    def __init__(self, inputs: list[torch.Tensor], many: bool) -> None:
        self._inputs, self._many = inputs, many
        self._storages = [_storage(t) for t in inputs]
        self._fresh: dict[int, int] = {}  # number by allocated storage
        self._made: list[torch.Tensor] = []  # one tensor per allocated storage, which keeps it alive
        self._dtypes: dict[int, torch.dtype] = {}  # dtype of each allocation that is returned in parts, by number

    def shortcut(self, noted: Sequence[tuple[Any, tuple[Any, ...]]], result: Any) -> Shortcut:
        """Return the shortcut. Raise _Unclear if the run does not determine one."""
        aligned = [t.data_ptr() % ALIGNMENT == 0 for t in self._inputs]
        result_form = self._wanted(result)
        launches = tuple(self._launch(kernel, arguments) for kernel, arguments in noted)
        returned = list(_numbers(result_form))
        if len(returned) > len(set(returned)) and not self._many:
            raise _Unclear
        allocations = tuple(self._allocation(t, i, i in returned) for i, t in enumerate(self._made, len(self._inputs)))
        hooks = [arguments[hook] for _, arguments in noted for hook in HOOKS if arguments[hook] is not None]
        if not all(hasattr(hook, "calls") for hook in hooks):
            raise _Unclear
        devices = {t.device for t in self._made}
        if len(devices) > 1:
            raise _Unclear
        empty = allocator(devices.pop().type if devices else "cpu")
        unlike = tuple({id(hook): hook for hook in hooks}.values())
        return Shortcut(aligned, unlike, allocations, empty, launches, result_form, self._apart())

    def _apart(self) -> tuple[tuple[int, int, int], ...]:
        """Return pairs of given tensors that share a storage: the first, another, and the bytes between them."""
        first: dict[int, int] = {}
        pairs = [(first.setdefault(storage, i), i) for i, storage in enumerate(self._storages)] if self._many else []
        return tuple((a, b, self._inputs[b].data_ptr() - self._inputs[a].data_ptr()) for a, b in pairs if a != b)

    def _launch(self, kernel: Any, arguments: tuple[Any, ...]) -> KernelLaunch:
        """Return a launch with its pointers replaced by places."""
        places = [(i, self._position(value)) for i, value in enumerate(arguments) if i >= ARGUMENTS]
        unfilled = [_without_tensors(value) for value in arguments]
        unfilled[STREAM] = None
        pointer_places = tuple((i, *position) for i, position in places if isinstance(position, tuple))
        return KernelLaunch(
            kernel,
            launcher(kernel),
            tuple(unfilled),
            pointer_places,
            tuple((i, position) for i, position in places if isinstance(position, list)),
        )

    def _position(self, value: Any) -> Place | None:
        """Return the place of a pointer, or the places inside a tuple; None for a plain value."""
        if isinstance(value, torch.Tensor):
            return self._pointer(value)
        if isinstance(value, tuple):
            element_places = [(i, self._position(item)) for i, item in enumerate(value)]
            return [(i, position) for i, position in element_places if position is not None] or None
        is_plain = isinstance(value, int | float | str | torch.dtype | None)
        if not is_plain and not type(value).__module__.startswith(_TRITON):
            raise _Unclear
        return None

    def _pointer(self, t: torch.Tensor) -> tuple[int, int]:
        """Return the tensor number and byte offset from which this tensor's pointer follows."""
        mates = {
            id(g): i for i, (g, s) in enumerate(zip(self._inputs, self._storages, strict=True)) if s == _storage(t)
        }
        if id(t) in mates:
            return mates[id(t)], 0
        if len(mates) > 1 and not self._many:
            raise _Unclear  # it may be a part of any of them
        if not t.numel() and t.untyped_storage().nbytes():
            raise _Unclear  # an empty tensor has no pointer
        if mates:
            number = next(iter(mates.values()))
            return number, t.data_ptr() - self._inputs[number].data_ptr()
        return len(self._inputs) + self._number(t), t.data_ptr() - t.untyped_storage().data_ptr()

    def _number(self, t: torch.Tensor) -> int:
        """Return the number of an allocated storage, in order of first use."""
        storage = _storage(t)
        if storage not in self._fresh:
            self._fresh[storage] = len(self._made)
            self._made.append(t)
        return self._fresh[storage]

    def _wanted(self, value: Any) -> Any:
        """Return the result with numbers or views for tensors."""
        if isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo:
            indices, values = self._part(value._indices()), self._part(value._values())
            if type(indices) is type(values) is View:
                raise _Unclear  # it may be an argument itself
            return SparseParts(indices, values, tuple(value.shape), value.is_coalesced())
        if isinstance(value, torch.Tensor) and lazy_bits(value) and not any(value is tensor for tensor in self._inputs):
            raise _Unclear  # its values depend on conj or neg bits, too
        if isinstance(value, torch.Tensor) and self._many:
            return self._view(value)
        if isinstance(value, torch.Tensor):
            if _storage(value) in self._storages:
                return Numbered(self._identical(value))
            return Numbered(len(self._inputs) + self._number(value))
        if isinstance(value, tuple | list):
            return type(value)([self._wanted(item) for item in value])
        return value

    def _view(self, t: torch.Tensor) -> Numbered | View:
        """Return a result of many calls: a given tensor, or a part of a given or allocated one."""
        for i, tensor in enumerate(self._inputs):
            if tensor is t:
                return Numbered(i)
        storage, size, offset = _storage(t), tuple(t.shape), int(t.storage_offset())
        if storage not in self._storages:
            number = len(self._inputs) + self._number(t)
            if self._dtypes.setdefault(number, t.dtype) != t.dtype:
                raise _Unclear
            return View(number, size, t.stride(), offset)
        number = self._storages.index(storage)
        tensor = self._inputs[number]
        if tensor.dtype != t.dtype or lazy_bits(tensor):
            raise _Unclear
        return View(number, size, t.stride(), offset - int(tensor.storage_offset()))

    def _part(self, t: torch.Tensor) -> Numbered | View:
        """Return the indices or values of a sparse result."""
        if _storage(t) not in self._storages:
            return Numbered(len(self._inputs) + self._number(t))
        number, _ = self._pointer(t)
        offset = int(t.storage_offset()) - int(self._inputs[number].storage_offset())
        return View(number, tuple(t.shape), t.stride(), offset)

    def _identical(self, value: torch.Tensor) -> int:
        """Return the number of the given tensor that is this object."""
        for i, tensor in enumerate(self._inputs):
            if tensor is value:
                return i
        raise _Unclear  # it is a view of an argument

    def _allocation(self, t: torch.Tensor, number: int, returned: bool) -> tuple[Any, ...]:
        """Return size, strides and dtype of an allocation; memory that is not returned is allocated as bytes."""
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
    """Yield the numbers of all tensors in a result."""
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
    """Return a launch argument with None for tensors."""
    if isinstance(value, torch.Tensor):
        return None
    return tuple(map(_without_tensors, value)) if type(value) is tuple else value


def _storage(t: torch.Tensor) -> int:
    """Return the identity of a strided tensor's storage."""
    if t.layout is not torch.strided:
        raise _Unclear
    return int(t.untyped_storage()._cdata)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches the ATen calls of a wrapper.

    Attributes:
        more: True if ATen did more than allocate and make views, or if a launch was part of autotuning.
    """

    more = False

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch._C._dispatch_has_kernel_for_dispatch_key(name_of(func), "CompositeImplicitAutograd"):
            with self:  # below autograd, composites such as broadcast_tensors arrive undecomposed
                return func.decompose(*args, **(kwargs or {}))
        if moves_data(func) or written(func):
            self.more = True
        return func(*args, **(kwargs or {}))


@contextmanager
def _noting(noted: list[tuple[Any, tuple[Any, ...]]], watch: _Watch) -> Iterator[None]:
    """Record this thread's launches as (kernel, arguments). Triton receives plain floats."""
    from triton.compiler import CompiledKernel
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    compiled_run, autotuner_run, thread = CompiledKernel.run, Autotuner.run, threading.get_ident()
    jit_run = JITFunction.run

    def begin(function: Any, *args: Any, **kwargs: Any) -> Any:
        return jit_run(function, *map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        watch.more = True
        return autotuner_run(tuner, *args, **kwargs)

    def run(kernel: Any) -> Callable[..., None]:
        launch = compiled_run.__get__(kernel)

        def noting(*positional: Any) -> None:
            arguments = plain(positional)
            if threading.get_ident() == thread:
                noted.append((kernel, arguments))
            launch(*arguments)

        return noting

    with _PATCHED:
        CompiledKernel.run, Autotuner.run, JITFunction.run = property(run), tune, begin
        try:
            yield
        finally:
            CompiledKernel.run, Autotuner.run, JITFunction.run = compiled_run, autotuner_run, jit_run


def _specialises_by_alignment() -> bool:
    """Return True if the backend specializes kernels by nothing but the pointer's alignment."""
    from triton.backends.compiler import BaseBackend
    from triton.compiler import make_backend
    from triton.runtime import driver

    backend = type(make_backend(driver.active.get_current_target()))
    return backend.get_tensor_specialization is BaseBackend.get_tensor_specialization
