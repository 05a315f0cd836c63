"""Run launches in Triton's interpreter, check every access, and choose the order of program instances.

It relies on parts that the interpreters of Triton 3.6 to 3.9 share: `GridExecutor`, `_implicit_cvt`, and the four
functions in `_interpreter` that access memory.
"""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

from traces.values import Rebuilt
from verify.child.accesses import Launch, Memory
from verify.child.guards import check_arguments, launching, notes
from verify.child.hints import mend_hints
from verify.child.interpreter import LOOP, mend
from verify.child.interruption import Programs
from verify.child.launches import grid_of, note
from verify.child.quick import arguments_of, specification
from verify.child.tuning import patch_autotuners
from verify.child.unspecified import mend_undefined, poison, unspecified
from verify.child.witness import witness

# CUDA C programming guide, table of compute capabilities; HIP has the same limits
MAX_GRID = (2**31 - 1, 65_535, 65_535)

_local = threading.local()  # for each thread: .launch is the current launch, .programs its scheduler


class Simulator:
    """Launcher, which is configured for each request.

    `seed` decides the order of program instances: 0 is the natural order, 1 its reverse.
    """

    def __init__(self) -> None:
        self.configure(0, 1, [], {})

    def configure(
        self,
        seed: int,
        alignment: int,
        memory: Sequence[Rebuilt],
        protected: Mapping[int, str],
        hardware: bool = False,
    ) -> None:
        """Set the options for a request.

        Args:
            seed: Decides the order for program instances, and unspecified choices.
            alignment: Alignment in bytes that a block's first address must have.
            memory: Rebuilt arguments.
            protected: Arguments that must not be written: names by storage address.
            hardware: True to round, and to fill masked lanes, as hardware may.
        """
        self.seed = seed
        unspecified.configure(seed, hardware)
        groups = {m.buffer.data_ptr(): (m.buffer.data_ptr() + m.start, m.nbytes) for m in memory}
        self.memory = Memory(groups, dict(protected), alignment)

    def launch(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run one grid, as `GridExecutor.__call__` does for tensors that are already in host memory."""
        fn = executor.fn
        notes.kernels.append(fn.__name__)
        witness.launch(fn.__name__)
        spec = specification(fn)
        kwargs = {k: v for k, v in kwargs.items() if k in spec.args or k in spec.kwonlyargs}
        bound = arguments_of(fn, args, kwargs)
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

        x, y, z = _within_limits(fn.__name__, grid)
        interpreter_builder.set_grid_dim(x, y, z)
        launch.alone = x * y * z <= 1
        numbers = count(1)

        def run(index: int) -> None:
            # z varies fastest in the natural order.
            program = (index // (y * z), index // z % y, index % z)
            launch.enter(index, program)
            witness.program(fn.__name__, program, next(numbers), x * y * z)
            interpreter_builder.set_grid_idx(*program)
            fn(**values)

        started = time.thread_time()
        with launching():
            try:
                _local.programs = Programs(launch, unspecified.order(x * y * z), run)
                _local.programs.run()
            except Exception as error:  # noqa: BLE001 - like the interpreter, so that the wrapper sees the same error
                raise InterpreterError(repr(error)) from error
            finally:
                notes.seconds += time.thread_time() - started


def _within_limits(kernel: str, grid: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the grid in three dimensions; raise ValueError if no launch can have it."""
    if not 1 <= len(grid) <= len(MAX_GRID):
        raise ValueError(f"{kernel}: a grid has 1 to 3 dimensions, not {len(grid)}")
    for size, most, axis in zip(grid, MAX_GRID, "xyz", strict=False):
        if not 0 <= size <= most:
            raise ValueError(f"{kernel}: a grid of {size:,} programs in {axis}, where a launch has at most {most:,}")
    x, y, z = grid + (1,) * (3 - len(grid))
    return x, y, z


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
    """Run every launch in this process with `simulator`."""
    from triton.runtime import interpreter

    mend()
    mend_undefined()
    mend_hints(lambda text: _local.launch.hinted(text))
    convert = interpreter._implicit_cvt

    def implicit_cvt(value: Any) -> Any:
        converted = convert(value)
        launch = getattr(_local, "launch", None)
        if launch is not None and hasattr(value, "data_ptr"):
            tensor = getattr(value, "base", value)  # the tensor inside a `triton.reinterpret`ed one
            converted.handle.data = np.array([launch.register(_local.name, tensor)], dtype=np.uint64)
        return converted

    interpreter.GridExecutor.__call__ = lambda self, *args, **kwargs: simulator.launch(self, args, kwargs)
    interpreter._implicit_cvt = implicit_cvt
    interpreter._interpreter = _checked(interpreter._interpreter)
    _mark_atomics(interpreter.InterpreterBuilder)
    _mark_waits(interpreter)
    _mark_loops(interpreter)
    patch_autotuners()


def _mark_atomics(builder: Any) -> None:
    """Record the memory order and the scope of atomics, and mark loads and stores that are atomic.

    Newer interpreters build atomic loads and stores from plain ones. They are no races.
    """

    def marked(original: Any, plain: bool) -> Any:
        def call(self: Any, *args: Any) -> Any:
            _interrupt()
            launch = _local.launch
            launch.atomic, launch.sem, launch.scope = plain, *(option.name.lower() for option in args[-2:])
            try:
                return original(self, *args)
            finally:
                launch.atomic = False

        return call

    for name in ("load", "store", "poll", "rmw", "cas"):
        function = f"create_atomic_{name}"
        if hasattr(builder, function):
            setattr(builder, function, marked(getattr(builder, function), plain=name in ("load", "store", "poll")))


def _mark_waits(interpreter: Any) -> None:
    """Mark the operations that synchronise the lanes of a program instance."""

    def marked(original: Any) -> Any:
        def call(self: Any, *args: Any) -> Any:
            _local.launch.lanes.wait()
            return original(self, *args)

        return call

    builder, fold = interpreter.InterpreterBuilder, interpreter.ReduceScanOpInterface
    names = ("create_barrier", "create_dot", "create_dot_scaled", "create_histogram", "create_gather")
    for owner, name in (*((builder, name) for name in names), (fold, "apply")):
        if hasattr(owner, name):  # older versions have no scaled products
            setattr(owner, name, marked(getattr(owner, name)))


def _mark_loops(interpreter: Any) -> None:
    """Record in a program instance's lanes which loop runs, and its iterations."""
    original = interpreter.tl.range

    def loop(
        arg1: Any, arg2: Any = None, step: Any = None, num_stages: Any = None, *_: Any, **__: Any
    ) -> Iterator[Any]:
        yield from _local.launch.lanes.loop(int(num_stages or 1), original(arg1, arg2, step))

    interpreter.tl.range = loop
    setattr(builtins, LOOP, loop)


def _checked(memory: Any) -> SimpleNamespace:
    """Return the interpreter's native functions, with checks on those that access memory.

    Pointers, masks and values are NumPy arrays with one shape. A forbidden lane loads poison and stores nothing.
    """

    def admit(pointers: Any, mask: Any, kind: str, size: int, values: Any = None) -> tuple[Any, Any, Any]:
        """Return the real addresses, the lanes to perform, and True if no requested lane is forbidden."""
        mask, launch = np.broadcast_to(mask, pointers.shape), _local.launch
        notes.accessed += 1
        notes.lanes += pointers.size
        real, permitted = launch.admit(pointers, mask, size, kind, values)
        allowed = mask if permitted is None else mask & permitted
        if not launch.atomic:
            launch.by_lane(pointers, real, allowed, kind, values)
        return real, allowed, permitted is None or bool(permitted[mask].all())

    def load(pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        if _local.launch.communicates and not _local.launch.atomic:
            _interrupt(at_load=True)
        real, allowed, whole = admit(pointers, mask, "load", dtype.itemsize)
        if not whole:
            other = np.where(mask & ~allowed, poison(dtype), np.asarray(other, dtype))
        values = memory.load(real, allowed, other, dtype)
        _local.launch.saw(pointers, values)
        return values

    def store(pointers: Any, value: Any, mask: Any) -> Any:
        real, allowed, _ = admit(pointers, mask, "store", value.itemsize, value)
        _local.launch.progress()
        return memory.store(real, value, allowed)

    def atomic_rmw(operation: Any, pointers: Any, value: Any, mask: Any, order: Any) -> Any:
        real, allowed, _ = admit(pointers, mask, "atomic", value.itemsize)
        # The native exchange supports only integers.
        bits = value.view(f"u{value.itemsize}") if operation == memory.RMW_OP.XCHG else value
        previous = _by_lane(lambda *lanes: memory.atomic_rmw(operation, *lanes, order), real, bits, allowed)
        _local.launch.saw(pointers, previous)
        _interrupt()
        return previous.view(value.dtype)

    def atomic_cas(pointers: Any, expected: Any, value: Any, order: Any) -> Any:
        real, _, whole = admit(pointers, np.ones(pointers.shape, dtype=bool), "atomic", value.itemsize)
        if not whole:  # the native function has no mask, so no lane is performed
            return np.full(pointers.shape, poison(value.dtype), dtype=value.dtype)
        previous = _by_lane(lambda *lanes: memory.atomic_cas(*lanes, order), real, expected, value)
        _local.launch.saw(pointers, previous)
        _interrupt()
        return previous

    checked = {"load": load, "store": store, "atomic_rmw": atomic_rmw, "atomic_cas": atomic_cas}
    native = {name: getattr(memory, name) for name in dir(memory) if not name.startswith("__")}
    return SimpleNamespace(**{**native, **checked})


def _interrupt(at_load: bool = False) -> None:
    from triton.runtime.interpreter import interpreter_builder

    _local.programs.interrupt(at_load)
    interpreter_builder.set_grid_idx(*_local.launch.program)


def _by_lane(perform: Any, *arrays: Any) -> Any:
    """Perform an atomic lane by lane in the configured order, and return the previous value for each lane."""
    if arrays[0].size == 1:
        return perform(*arrays)
    turns = unspecified.order(arrays[0].size)
    previous = perform(*(np.ascontiguousarray(np.broadcast_to(a, arrays[0].shape).reshape(-1)[turns]) for a in arrays))
    returned = np.empty_like(previous)
    returned[turns] = previous
    return returned.reshape(arrays[0].shape)
