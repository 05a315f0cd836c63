"""The recorder: a dispatch mode that sees every ATen call, counts it, and stores the first of each signature.

Nothing in the program changes: arguments are copied before a call as bytes, no tensor is kept, no random number is
drawn, and an error of the recorder itself is counted, never raised.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from types import TracebackType
from typing import Any

import torch

from capture import sim
from capture.flow import FlowTape
from capture.forks import watch
from capture.keys import maker
from capture.limits import Limits
from capture.mode import Mode
from capture.modules import ModuleTracker
from capture.plans import CapturePlan, make_plan
from capture.signatures import describe
from capture.stance import force_eager
from capture.steps import Phases, Steps, begins_work
from capture.tallies import Known, Tallies
from capture.tape import SeenCall, Tape, TapeEntry, is_capturing_graph, of_this_rank, place_of, tensors, touches_meta
from capture.unseen import Aliases, Unrecordable, Unseen, follow, function_modes, has_subclass, plain
from traces.call_keys import recorded_key
from traces.errors import UserError
from traces.overloads import bind, kind, written
from traces.writer import CallSite

MAX_ERRORS = 20  # errors of the recorder after which it stops recording
_ELSEWHERE = "in other steps or phases"


class Recorder:
    """Records the ATen calls made inside its `with` block into a trace directory.

        with Recorder("step.trace", model=model) as recorder:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step()

    path: the directory, which must not exist unless `force` (and then must be a trace); in a job of several ranks each
    writes a trace of its own, `step-rank3.trace`. model: module names are relative to it. info: what to put into the
    manifest. native: a directory for what tells calls apart in C++, built there if it is not (10 to 30 s); else Python
    does. limits: fields of capture.limits.Limits, such as steps, max_bytes or dataflow. Further threads may enter the
    same recorder. Raises UserError if the directory cannot be had or a limit makes no sense. If the block raises,
    the trace stays marked as unfinished. In a process forked inside the block recording stops.

    In a program that never calls `step`, a step ends where the next one's work begins after a step of an optimizer (the
    manifest's `ended_by` says so). errors: of the recorder itself, by operator: how many, and the first. skipped: calls
    not recorded, by reason. failure: what kept the trace from being written, such as a full disk, or None.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: torch.nn.Module | None = None,
        force: bool = False,
        info: dict[str, Any] | None = None,
        native: str | os.PathLike[str] | None = None,
        **limits: Any,
    ) -> None:
        self.path = os.fspath(path)
        self.limits = Limits(**limits)
        self.errors: dict[str, dict[str, Any]] = {}
        self.skipped: Counter[str] = Counter()
        self.failure: Exception | None = None
        self._force, self._info = force, info
        self._modules = ModuleTracker(model)
        self._flow = FlowTape() if self.limits.dataflow else None
        self._tape: Tape | None = None
        self._lock = threading.Lock()
        self._modes: dict[int, Mode] = {}  # by thread
        self._whole: set[str] = set()  # composite operators that the device has kernels for
        self._plans: dict[int, CapturePlan] = {}  # by id of the operator
        self._entries: dict[Hashable, TapeEntry] = {}
        self._stored: Counter[str] = Counter()  # calls by overload
        self._phases = Phases()
        self._settled = 1  # a step from which on no new signature is expected
        self._steady: Known | None = None  # it has come; what is known is only tallied
        self._tallies = Tallies(maker(native))
        self._steps = Steps(self.limits)
        self._phases_wanted = frozenset(self.limits.phases)
        self._seq = 0
        self._fence: tuple[int, Counter[str]] | None = None  # number of calls and those skipped, before doubtful steps
        self._recording = True
        self._stack = ExitStack()
        watch(self)

    def __enter__(self) -> Recorder:
        thread = threading.get_ident()
        with self._lock:
            if thread in self._modes:
                raise UserError(f"{self.path}: this recorder is already recording in this thread")
            if not self._modes:
                self._start()
            mode = self._modes[thread] = Mode(self)
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
        if self._tape is not None:
            raise UserError(f"{self.path}: a recorder records once; make another Recorder with a path of its own")
        self.path = of_this_rank(self.path)
        self._tape = self._new_tape(self._force)
        self._modules.start()
        self._stack.enter_context(force_eager())  # compiled code would hide its operators

    def _new_tape(self, force: bool) -> Tape:
        return Tape(self.path, self.limits, {**(self._info or {}), "limits": asdict(self.limits)}, force)

    def _finish(self) -> None:
        self._stack.close()
        self._modules.stop()
        self._drain()
        self._tallies.settle()
        steps = self._steps
        if steps.doubtful and self._fence is not None:  # the program never marked a step: these calls are too many
            seq, self.skipped = self._fence
            self.skipped[_ELSEWHERE] += self._seq - seq
        totals = {
            "skipped": dict(self.skipped),
            "errors": self.errors,
            "whole": sorted(self._whole),
            "steps": steps.count,
            "ended_by": steps.ended_by,
        }
        if self._tape is not None:
            flow = self._flow.finish() if self._flow is not None else None
            self.failure = self._tape.close(self._recording, steps.doubtful, steps.first, flow, **totals)
        if self.failure is not None:
            warnings.warn(f"{self.path} is incomplete: {self.failure}", RuntimeWarning, stacklevel=3)
        elif self.limits.skip_steps and not self._entries:
            told = f"skip_steps is {self.limits.skip_steps}, and the program ended {steps.ended} steps"
            warnings.warn(f"{self.path}: nothing was recorded: {told}", RuntimeWarning, stacklevel=3)

    def _after_fork(self) -> None:
        """In a forked process: leave the trace alone, and replace the lock, which a thread of the parent may hold."""
        self._lock = threading.Lock()
        if self._tape is not None:
            self._recording, self._steady = False, None

    @property
    def contents_bytes(self) -> int:
        """Bytes of tensor contents that were taken so far and are not given up."""
        return 0 if self._tape is None else self._tape.contents_bytes

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what the program does inside this block: forward, loss, backward, clip, optimizer, or a word of its own.

        Outside such blocks, calls under autograd's engine are "backward", those of `Optimizer.step` are "optimizer",
        and all others "forward".
        """
        self._phases.begin(name)
        try:
            yield
        finally:
            self._phases.end()

    def step(self) -> None:
        """End a training step; the calls that follow belong to the next one."""
        self._guarded("step()", self._end_marked_step)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing inside this block, such as the loading of data. No other dispatch mode may lie in between."""
        mode = self._modes[threading.get_ident()]
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._modules.stop()
        try:
            yield
        finally:
            self._follow_modules()
            mode.__enter__()  # type: ignore[no-untyped-call]

    def _end_marked_step(self) -> None:
        restarts = self._steps.restarts
        self._end_step(self._steps.end)
        if restarts and self._entries:
            self._restart()

    def _end_step(self, end: Callable[[], None]) -> None:
        self._drain()
        if self._flow is not None and self._steps.number == 0:
            self._flow.finish()
        end()
        settled = self._steps.wanted and self._steps.number >= self._settled
        self._steady = self._tallies.known if settled and self._recording else None
        self._follow_modules()
        if self._steps.doubtful and self._fence is None and self._tape is not None:
            self._tallies.settle()
            self._fence = self._seq, Counter(self.skipped)
            self._tape.fence()

    def _restart(self) -> None:
        """Begin the trace anew: what is in it turned out to belong to skipped steps."""
        assert self._tape is not None
        self.skipped[_ELSEWHERE] += self._seq
        tape, self._tape = self._tape, None
        tape.abandon()
        self._entries, self._tallies, self._stored = {}, self._tallies.anew(), Counter()
        self._flow = FlowTape() if self.limits.dataflow else None
        self._seq, self._settled, self._steady = 0, 1, None
        try:
            self._tape = self._new_tape(force=False)
        except (OSError, UserError) as error:
            self._recording, self.failure = False, error

    def _drain(self) -> None:
        self._seq += self._tallies.drain(self._steps.number)

    def _follow_modules(self) -> None:
        """Follow the calls of modules, which takes time, only as long as new signatures are to be expected."""
        expected = self._steps.number < self._settled
        self._modules.start() if expected else self._modules.stop()

    def _plan(self, func: Any) -> CapturePlan:
        plan = self._plans.get(id(func))  # operators live on in their plans; their own hash is slow
        if plan is None:
            plan = CapturePlan(func, str(func), "")
            plan = self._guarded(plan.name, lambda: make_plan(func, self.limits.ops)) or plan
            self._plans[id(func)] = plan
        return plan

    def _before(self, plan: CapturePlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenCall | None:
        """Count a call that is about to happen; what has to be done after it, if anything."""
        if not self._recording or self._steps.over:
            return None
        with self._lock:  # not by `_guarded`, since every call comes here
            try:
                if has_subclass(args) or (kwargs and has_subclass(kwargs.values())) or function_modes():
                    return self._observe_plain(plan, args, kwargs)
                return self._observe(plan, args, kwargs)
            except Unrecordable as reason:
                self.skipped[str(reason)] += 1
            except Exception as error:  # noqa: BLE001 - as there
                self._failed(plan.name, error)
            return None

    def _observe_plain(self, plan: CapturePlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenCall | None:
        aliases: Aliases = []
        with Unseen():
            seen = self._observe(plan, plain(args, aliases), plain(kwargs, aliases))
        return seen and replace(seen, aliases=aliases)

    def _after(self, seen: SeenCall, result: Any) -> None:
        """Store a call that has happened."""
        if self._recording:
            self._guarded(seen.plan.name, lambda: self._store(seen, result))

    def _discard(self, seen: SeenCall) -> None:
        """Forget a call that has raised."""
        if self._recording and seen.tape is self._tape:
            self._guarded(seen.plan.name, partial(seen.discard, self._flow))

    def _guarded(self, what: str, work: Callable[[], Any]) -> Any:
        with self._lock:
            try:
                with Unseen():
                    return work()
            except Exception as error:  # noqa: BLE001 - an error of the recorder must never reach the user's training
                self._failed(what, error)
                return None

    def _note(self, what: str, error: Exception) -> None:
        with self._lock:
            self._failed(what, error)

    def _skip(self, plan: CapturePlan) -> None:
        if self._recording and not self._steps.over:
            with self._lock:
                self.skipped[plan.skipped or ""] += 1

    def _failed(self, what: str, error: Exception) -> None:
        self.errors.setdefault(what, {"count": 0, "first": f"{type(error).__name__}: {error}"[:200]})["count"] += 1
        if sum(e["count"] for e in self.errors.values()) >= MAX_ERRORS or isinstance(error, OSError):
            self._recording, self._steady = False, None  # a full disk does not mend itself

    def _observe(self, plan: CapturePlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenCall | None:
        steps, phase = self._steps, self._phases.current()
        if plan.skipped == "":
            if self._phases.follow(plan.name, args):
                steps.optimized()
                self._steady = None if steps.ending else self._steady
            return None
        if steps.ending and begins_work(plan.name, phase, args, kwargs):
            self._end_step(steps.end_by_itself)
        flow = self._flow if steps.number == 0 else None
        if plan.skipped is not None:
            self.skipped[plan.skipped] += 1
            if flow is not None:
                flow.pass_by((args, kwargs))
            return None
        if not steps.wanted or (self._phases_wanted and phase not in self._phases_wanted):
            self.skipped[_ELSEWHERE] += 1
            return None
        place = sim.place()
        key = recorded_key(plan.op if place is None else (plan.op, place), args, kwargs)
        entry = self._entries.get(key)
        if entry is None:
            with Unseen():
                entry = self._new_entry(key, plan, args, kwargs)
            if entry is None:
                if flow is not None:
                    flow.pass_by((args, kwargs))
                return None
        self._tallies.settle()  # what was counted before
        entry.signature.count(phase, steps.number)
        self._seq += 1
        settled = steps.number >= self._settled
        if flow is not None or entry.wanted or ((plan.produces or plan.mutates) and not settled):
            with Unseen():
                return self._look_closer(plan, entry, phase, bind(plan.op, args, kwargs), flow)
        if settled and place is None:  # for `sim` the host's tensors stand, from which no key tells the device's calls
            self._tallies.start(plan.op, phase, args, kwargs, entry.signature)
            self._steady = None if steps.ending else self._tallies.known
        return None

    def _look_closer(
        self, plan: CapturePlan, entry: TapeEntry, phase: str, arguments: dict[str, Any], flow: FlowTape | None
    ) -> SeenCall | None:
        assert self._tape is not None
        if entry.wanted and self.limits.per_op_max and self._stored[plan.name] >= self.limits.per_op_max:
            entry.wanted = 0
        sample = begun = None
        if (entry.wanted or flow is not None) and not is_capturing_graph():
            self._drain()
            entry.wanted -= 1  # stays so if this fails, which it would at the next call too
            thread = int(threading.get_ident() != next(iter(self._modes)))  # 1: another than the first, as autograd's
            where = self._modules.current(), thread, torch.is_grad_enabled()
            site = CallSite(self._seq - 1, self._steps.number, phase, *where)
            begun = flow.begin(plan.op, arguments, site) if flow is not None else None
            sample = self._tape.take(plan.op, entry, site, arguments)
            entry.wanted += 1  # only a call that returns uses up a sample
        if plan.mutates:
            self._tape.forget(tensors({name: arguments[name] for name in written(plan.op)}))
        inputs = arguments if plan.produces and sample is None else None
        return SeenCall(plan, self._tape, entry, sample, inputs, begun) if sample is not None or plan.produces else None

    def _new_entry(
        self, key: Hashable, plan: CapturePlan, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TapeEntry | None:
        assert self._tape is not None
        arguments = bind(plan.op, args, kwargs)
        if touches_meta(arguments):
            self.skipped["meta tensors"] += 1
            return None
        if len(self._entries) >= self.limits.max_signatures:
            self.skipped[f"after {self.limits.max_signatures} signatures, with yet another one"] += 1
            return None
        if plan.composite:
            self._whole.add(plan.name)
        where = sim.place() or place_of(arguments), sim.place() == "cpu"
        signature = self._tape.signature(plan.name, kind(plan.op, arguments), describe(arguments), *where)
        entry = self._entries[key] = TapeEntry(signature, self.limits.per_signature, [])
        if signature.kind != "view":  # slices of data at random places bring a new one in every step
            self._settled, self._steady = self._steps.number + 2, None
        return entry

    def _store(self, seen: SeenCall, result: Any) -> None:
        if seen.tape is not self._tape:  # the trace has begun anew
            return
        follow(seen.aliases)
        result = plain(result, list(seen.aliases))
        stored, wanted = None, seen.entry.wanted or seen.flow is not None
        if seen.sample is not None and not wanted:  # a call inside this one was stored, or another thread's
            self._tape.discard(seen.sample)
        elif seen.sample is not None:
            seen.entry.wanted = max(seen.entry.wanted - 1, 0)
            self._stored[seen.plan.name] += 1
            stored = self._tape.commit(seen.sample, result)
        if seen.flow is not None and self._flow is not None:
            self._flow.end(seen.flow, result, stored)
        if seen.plan.produces:
            self._tape.follow(seen.inputs, result, seen.entry, seen.sample)
