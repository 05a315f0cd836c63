"""Launches in Triton's interpreter, with every access checked and the programs in an order of the judge's choice.

Works on what the interpreters of Triton 3.6 to 3.9 share: `GridExecutor`, `_implicit_cvt`, and the four functions of
`_interpreter` that touch memory.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from traces.values import Rebuilt
from verify.child.accesses import Launch, Memory, poison
from verify.child.guards import check_arguments, launching, notes
from verify.child.interpreter import mend
from verify.child.launches import grid_of, note
from verify.child.tuning import patch_autotuners
from verify.child.witness import witness


_local = threading.local()  # .launch: what runs in this thread


class Simulator:
    """How launches run, set anew for each request. seed: of the order of programs; 0 is the natural one, 1 its reverse."""

    def __init__(self) -> None:
        self.configure(0, 1, [], {})

    def configure(self, seed: int, alignment: int, memory: Sequence[Rebuilt], protected: Mapping[int, str]) -> None:
        """alignment: of a block's first address. memory: the rebuilt arguments. protected: not to be written, by the
        addresses of their storages.
        """
        self.seed = seed
        self.random = np.random.default_rng(seed)
        groups = {m.buffer.data_ptr(): (m.buffer.data_ptr() + m.start, m.nbytes) for m in memory}
        self.memory = Memory(groups, dict(protected), alignment)

    def order(self, programs: int) -> Any:
        """Indices of a grid's programs, in the order to run them."""
        if self.seed < 2:
            return range(programs) if self.seed == 0 else range(programs - 1, -1, -1)
        return self.random.permutation(programs).tolist()

    def launch(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run one grid: what `GridExecutor.__call__` does for tensors that are in host memory already."""
        fn = executor.fn
        notes.kernels.append(fn.__name__)
        witness.launch(fn.__name__)
        spec = inspect.getfullargspec(fn)
        kwargs = {k: v for k, v in kwargs.items() if k in spec.args or k in spec.kwonlyargs}
        bound = inspect.getcallargs(fn, *args, **kwargs)
        check_arguments(fn.__name__, bound, executor.constexprs)
        for hook in executor.pre_run_hooks:
            hook(*args, **kwargs)
        launch = Launch(fn.__name__, fn.__code__.co_filename, self.memory)
        with _current(launch):
            values = {n: v if n in executor.constexprs else _convert(launch, n, v) for n, v in bound.items()}
            grid = grid_of(executor.grid, bound)
            note(fn.__name__, grid, bound)
            self._run(launch, fn, values, tuple(int(n) for n in grid))
            launch.finish()

    def _run(self, launch: Launch, fn: Any, values: dict[str, Any], grid: tuple[int, ...]) -> None:
        from triton.runtime.errors import InterpreterError
        from triton.runtime.interpreter import interpreter_builder

        assert 1 <= len(grid) <= 3, "grid must have 1 to 3 dimensions"
        x, y, z = grid + (1,) * (3 - len(grid))
        interpreter_builder.set_grid_dim(x, y, z)
        launch.alone = x * y * z <= 1
        with launching():
            try:
                for number, index in enumerate(self.order(x * y * z), 1):
                    program = (index // (y * z), index // z % y, index % z)
                    launch.enter(index, program)
                    witness.program(fn.__name__, program, number, x * y * z)
                    interpreter_builder.set_grid_idx(*program)
                    fn(**values)
            except Exception as error:  # noqa: BLE001 - as the interpreter does, so that the wrapper sees the same
                raise InterpreterError(repr(error)) from error


simulator = Simulator()


@contextmanager
def _current(launch: Launch) -> Iterator[None]:
    _local.launch = launch
    try:
        yield
    finally:
        _local.launch = None


def _convert(launch: Launch, name: str, value: Any) -> Any:
    from triton.runtime import interpreter

    _local.name = name
    return interpreter._implicit_cvt(value)


def patch_interpreter() -> None:
    """Have every launch of this process run by `simulator`."""
    from triton.runtime import interpreter

    mend()
    convert = interpreter._implicit_cvt

    def implicit_cvt(value: Any) -> Any:
        converted = convert(value)
        launch = getattr(_local, "launch", None)
        if launch is not None and hasattr(value, "data_ptr"):
            tensor = getattr(value, "base", value)  # of a `triton.reinterpret`ed one
            converted.handle.data = np.array([launch.register(_local.name, tensor)], dtype=np.uint64)
        return converted

    interpreter.GridExecutor.__call__ = lambda self, *args, **kwargs: simulator.launch(self, args, kwargs)
    interpreter._implicit_cvt = implicit_cvt
    interpreter._interpreter = _checked(interpreter._interpreter)
    _mark_atomics(interpreter.InterpreterBuilder)
    patch_autotuners()


def _mark_atomics(builder: Any) -> None:
    """Atomic loads and stores, which newer interpreters make of plain ones, are no races."""

    def marked(original: Any) -> Any:
        def call(self: Any, *args: Any) -> Any:
            _local.launch.atomic = True
            try:
                return original(self, *args)
            finally:
                _local.launch.atomic = False

        return call

    for name in ("create_atomic_load", "create_atomic_store", "create_atomic_poll"):
        if hasattr(builder, name):
            setattr(builder, name, marked(getattr(builder, name)))


def _checked(memory: Any) -> SimpleNamespace:
    """The interpreter's native functions; those that touch memory only do so where the current launch may.

    Pointers, masks and values are NumPy arrays of one shape; a forbidden lane loads poison and stores nothing.
    """

    def load(pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        mask = np.asarray(mask)
        real, fine = _local.launch.admit(pointers, mask, dtype.itemsize, "load")
        if fine is not None:
            other = np.where(mask & ~fine, poison(dtype), np.asarray(other, dtype))
            mask = mask & fine
        values = memory.load(real, mask, other, dtype)
        _local.launch.saw(pointers, values)
        return values

    def store(pointers: Any, value: Any, mask: Any) -> Any:
        mask = np.asarray(mask)
        real, fine = _local.launch.admit(pointers, mask, value.itemsize, "store", value)
        _local.launch.progress()
        return memory.store(real, value, mask if fine is None else mask & fine)

    def atomic_rmw(operation: Any, pointers: Any, value: Any, mask: Any, order: Any) -> Any:
        mask = np.asarray(mask)
        real, fine = _local.launch.admit(pointers, mask, value.itemsize, "atomic")
        # The native function exchanges integers alone.
        given = value.view(f"u{value.itemsize}") if operation == memory.RMW_OP.XCHG else value
        found = memory.atomic_rmw(operation, real, given, mask if fine is None else mask & fine, order)
        _local.launch.saw(pointers, found)
        return found.view(value.dtype)

    def atomic_cas(pointers: Any, expected: Any, value: Any, order: Any) -> Any:
        real, fine = _local.launch.admit(pointers, np.ones(pointers.shape, dtype=bool), value.itemsize, "atomic")
        if fine is not None and not fine.all():  # the function has no mask: none of its lanes is performed
            return np.full(pointers.shape, poison(value.dtype), dtype=value.dtype)
        found = memory.atomic_cas(real, expected, value, order)
        _local.launch.saw(pointers, found)
        return found

    checked = {"load": load, "store": store, "atomic_rmw": atomic_rmw, "atomic_cas": atomic_cas}
    native = {name: getattr(memory, name) for name in dir(memory) if not name.startswith("__")}
    return SimpleNamespace(**{**native, **checked})
