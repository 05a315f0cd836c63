"""The recorder: a dispatch mode that sees every ATen call, counts it, and stores the first of each signature.

Nothing in the program changes: arguments are copied before a call as bytes, no tensor is kept, no random number is
drawn, and an error of the recorder itself is counted, never raised.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from capture.modules import ModuleTracker
from capture.signatures import call_token, describe
from traces.errors import UserError
from traces.fingerprint import results
from traces.overloads import bind, kind, name_of, unread, written
from traces.values import Packed, pack
from traces.writer import CallSite, SignatureCount, TraceWriter

MAX_ERRORS = 20  # errors of the recorder after which it stops recording
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_MARKERS = frozenset({"profiler", "prim"})  # namespaces of calls that compute nothing
_COLLECTIVES = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd"})


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True  # the default makes torch.cond and flex_attention raise in the user's model

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch._C._get_dispatch_mode(_FAKE) is not None or FakeTensor in types:
            return func(*args, **kwargs)  # shapes without data
        for tensor_type in types:  # subclasses with a dispatch of their own desugar; what they call comes back here
            if tensor_type.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
                return NotImplemented
        plan = self._recorder._plan(func)
        if plan.composite:  # under inference_mode composite operators arrive whole
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        sample = self._recorder._before(plan, args, kwargs)
        result = func(*args, **kwargs)
        if sample is not None:
            self._recorder._after(sample, result)
        return result


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is known of an operator before its first call.

    skipped: why its calls are not recorded, empty for markers, None for what is recorded. mutates: writes an argument.
    composite: decomposes into other operators when it arrives whole.
    """

    op: Any
    name: str
    skipped: str | None
    mutates: bool = False
    composite: bool = False


@dataclass(slots=True)
class _Entry:
    """One signature in the recorder. wanted: how many more of its calls to store."""

    signature: SignatureCount
    wanted: int


@dataclass(frozen=True, slots=True)
class _Sample:
    """A call that is stored if it returns; lives no longer than the call itself.

    arguments: as they were before the call. mutated: those that it writes. rng: device and state of its generator.
    """

    plan: _Plan
    entry: _Entry
    site: CallSite
    arguments: Packed
    mutated: dict[str, Any]
    rng: tuple[str, bytes] | None


class Recorder:
    """Records the ATen calls made inside its `with` block into a trace directory.

        with Recorder("step.trace", model=model) as recorder:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step()

    path: the directory, which must not exist unless `force` (and then must be a trace). per_signature: how many calls
    of each signature to store with their bytes; all are counted. model: module names are relative to it. info: what to
    put into the manifest. Further threads may enter the same recorder. Raises UserError if the directory cannot be had.
    If the block raises, the trace stays marked as unfinished. In a process forked inside the block recording stops.

    errors: of the recorder itself, by operator: how many, and the first. skipped: calls not recorded, by reason.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        per_signature: int = 1,
        force: bool = False,
        model: torch.nn.Module | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        if per_signature < 1:
            raise UserError(f"per_signature {per_signature} is not a number of calls; use 1 or more")
        self.path = os.fspath(path)
        self.errors: dict[str, dict[str, Any]] = {}
        self.skipped: Counter[str] = Counter()
        self._per_signature = per_signature
        self._force = force
        self._info = info
        self._modules = ModuleTracker(model)
        self._writer: TraceWriter | None = None
        self._lock = threading.Lock()
        self._modes: dict[int, _Mode] = {}  # by thread
        self._plans: dict[Any, _Plan] = {}
        self._entries: dict[Hashable, _Entry | None] = {}  # None: signatures that are not recorded
        self._phases: list[str] = []  # explicit ones, innermost last; fields, since backward runs in other threads
        self._markers: list[bool] = []  # open blocks of the profiler: whether each is an optimizer's step
        self._step = 0
        self._seq = 0
        self._recording = True
        _recorders.add(self)

    def __enter__(self) -> Recorder:
        thread = threading.get_ident()
        with self._lock:
            if thread in self._modes:
                raise UserError(f"{self.path}: this recorder is already recording in this thread")
            if not self._modes:
                self._start()
            mode = self._modes[thread] = _Mode(self)
        mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread = threading.get_ident()
        self._modes[thread].__exit__(kind, value, trace)  # type: ignore[no-untyped-call]
        with self._lock:
            del self._modes[thread]
            self._recording = self._recording and kind is None
            if not self._modes:
                self._finish()

    def _start(self) -> None:
        if self._writer is not None:
            raise UserError(f"{self.path}: a recorder records once; make another Recorder with a path of its own")
        self._writer = TraceWriter(self.path, {**(self._info or {}), "per_signature": self._per_signature}, self._force)
        self._modules.start()

    def _finish(self) -> None:
        self._modules.stop()
        assert self._writer is not None
        try:
            self._writer.close(complete=self._recording, skipped=dict(self.skipped), errors=self.errors)
        except OSError as error:
            warnings.warn(f"{self.path} is incomplete: {error}", RuntimeWarning, stacklevel=3)

    def _after_fork(self) -> None:
        """In a forked process: leave the trace alone, and replace the lock, which a thread of the parent may hold."""
        self._lock = threading.Lock()
        if self._writer is not None:
            self._recording = False

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what the program does inside this block: forward, loss, backward, clip, optimizer, or a word of its own.

        Outside such blocks, calls under autograd's engine are "backward", those of `Optimizer.step` are "optimizer",
        and all others "forward".
        """
        self._phases.append(name)
        try:
            yield
        finally:
            self._phases.pop()

    def step(self) -> None:
        """End a training step; the calls that follow belong to the next one."""
        self._step += 1

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing inside this block, such as the loading of data. No other dispatch mode may lie in between."""
        mode = self._modes[threading.get_ident()]
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._modules.stop()
        try:
            yield
        finally:
            self._modules.start()
            mode.__enter__()  # type: ignore[no-untyped-call]

    def _follow_marker(self, plan: _Plan, args: tuple[Any, ...]) -> None:
        """Optimizers mark their step for the profiler, and end the mark even if the step raises."""
        if plan.name.startswith("profiler::_record_function_enter"):
            self._markers.append(str(args[0]).startswith("Optimizer.step#"))
        elif plan.name.startswith("profiler::_record_function_exit") and self._markers:
            self._markers.pop()

    def _current_phase(self) -> str:
        if self._phases:
            return self._phases[-1]
        if torch._C._current_graph_task_id() != -1:
            return "backward"
        return "optimizer" if any(self._markers) else "forward"

    def _plan(self, func: Any) -> _Plan:
        plan = self._plans.get(func)
        if plan is None:
            plan = _Plan(func, str(func), "")
            plan = self._plans[func] = self._guarded(plan, lambda: _make_plan(func)) or plan
        return plan

    def _before(self, plan: _Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Sample | None:
        """Count a call that is about to happen; a sample if it is to be stored."""
        if not self._recording:
            return None
        sample: _Sample | None = self._guarded(plan, lambda: self._observe(plan, args, kwargs))
        return sample

    def _after(self, sample: _Sample, result: Any) -> None:
        """Store a call that has happened."""
        if self._recording:
            self._guarded(sample.plan, lambda: self._store(sample, result))

    def _guarded(self, plan: _Plan, work: Callable[[], Any]) -> Any:
        with self._lock:
            try:
                return work()
            except Exception as error:  # noqa: BLE001 - an error of the recorder must never reach the user's training
                self._failed(plan, error)
                return None

    def _failed(self, plan: _Plan, error: Exception) -> None:
        found = self.errors.setdefault(plan.name, {"count": 0, "first": f"{type(error).__name__}: {error}"[:200]})
        found["count"] += 1
        too_many = sum(e["count"] for e in self.errors.values()) >= MAX_ERRORS
        if too_many or isinstance(error, OSError):  # a full disk does not mend itself
            self._recording = False

    def _observe(self, plan: _Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Sample | None:
        if plan.skipped is not None:
            if plan.skipped:
                self.skipped[plan.skipped] += 1
            else:
                self._follow_marker(plan, args)
            return None
        key = call_token(plan.op, args, kwargs, plan.mutates)
        entry = self._entries[key] if key in self._entries else self._new_entry(key, plan, args, kwargs)
        if entry is None:
            self.skipped["meta tensors"] += 1
            return None
        phase = self._current_phase()
        entry.signature.count(phase, self._step)
        self._seq += 1
        return self._sample(plan, entry, phase, bind(plan.op, args, kwargs)) if entry.wanted else None

    def _new_entry(self, key: Hashable, plan: _Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Entry | None:
        assert self._writer is not None
        arguments = bind(plan.op, args, kwargs)
        entry = None
        if not _touches_meta(arguments):
            signature = self._writer.signature(plan.name, kind(plan.op, arguments), describe(arguments))
            entry = _Entry(signature, self._per_signature)
        self._entries[key] = entry
        return entry

    def _sample(self, plan: _Plan, entry: _Entry, phase: str, arguments: dict[str, Any]) -> _Sample:
        entry.wanted -= 1  # stays so if packing fails, which would fail at the next call too
        rng = _rng(arguments) if entry.signature.kind == "random" else None
        mutated = {name: arguments[name] for name in written(plan.op)}
        # A sparse tensor cannot be rebuilt around unknown indices.
        skip = frozenset(n for n in unread(plan.op) if not _is_sparse(arguments[n]))
        packed = pack(_without_generator(arguments), skip)
        packed.data = [None if data is None else bytes(data) for data in packed.data]  # the call may overwrite them
        site = CallSite(self._seq - 1, self._step, phase, self._modules.current(), self._thread())
        entry.wanted += 1  # only a call that returns uses up a sample
        return _Sample(plan, entry, site, packed, mutated, rng)

    def _store(self, sample: _Sample, result: Any) -> None:
        assert self._writer is not None
        if not sample.entry.wanted:  # a call inside this one, or in another thread, was stored meanwhile
            return
        sample.entry.wanted -= 1
        found = results(sample.plan.op, sample.mutated, result)
        rng = None
        if sample.rng is not None:
            device, state = sample.rng
            rng = {"device": device, "blob": self._writer.add_blob(state), "nbytes": len(state)}
        self._writer.add_call(sample.entry.signature, sample.site, self._writer.store(sample.arguments), found, rng)

    def _thread(self) -> int:
        """0 for the thread that entered first, 1 for all others, such as autograd's."""
        return 0 if threading.get_ident() == next(iter(self._modes)) else 1


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _after_fork() -> None:
    for recorder in _recorders:
        recorder._after_fork()


os.register_at_fork(after_in_child=_after_fork)


def _make_plan(func: Any) -> _Plan:
    if not isinstance(func, OpOverload):
        return _Plan(func, str(func), "higher-order operators")
    if func.namespace in _MARKERS:
        return _Plan(func, name_of(func), "")
    if func.namespace in _COLLECTIVES:
        return _Plan(func, name_of(func), "collectives")
    composite = func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    return _Plan(func, name_of(func), None, bool(written(func)), composite)


def _tensors(arguments: dict[str, Any]) -> Iterator[torch.Tensor]:
    for value in arguments.values():
        yield from (v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, torch.Tensor))


def _device(arguments: dict[str, Any]) -> torch.device:
    """Where a call runs: as its `device` argument says, or its first tensor."""
    if arguments.get("device") is not None:
        return torch.device(arguments["device"])
    return next((t.device for t in _tensors(arguments)), torch.device("cpu"))


def _rng(arguments: dict[str, Any]) -> tuple[str, bytes]:
    """Device and state of the generator that the call is about to draw from. Reading it does not advance it."""
    generator = arguments.get("generator")
    if generator is not None:
        device, state = generator.device, generator.get_state()
    else:
        device = _device(arguments)
        state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    return str(device), bytes(state.numpy().data)


def _touches_meta(arguments: dict[str, Any]) -> bool:
    return _device(arguments).type == "meta" or any(t.device.type == "meta" for t in _tensors(arguments))


def _is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_sparse


def _without_generator(arguments: dict[str, Any]) -> dict[str, Any]:
    """A generator is stored by its state; a replay puts that state into the default one."""
    return {name: None if isinstance(value, torch.Generator) else value for name, value in arguments.items()}
