"""Count each ATen call while recording, and store the first calls for each signature.

`Observer` holds the logic that runs on each call. The dispatch mode in capture/mode.py calls it, and
capture/recorder.py adds the public `with` block, steps and phases.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from capture import sim
from capture.flow import FlowTape
from capture.keys import maker
from capture.limits import Limits
from capture.modules import ModuleTracker
from capture.plans import CapturePlan, make_plan
from capture.signatures import describe
from capture.steps import Phases, Steps, begins_work
from capture.tallies import Known, Tallies
from capture.tape import SeenCall, Tape, TapeEntry, is_capturing_graph, place_of, tensors, touches_meta
from capture.unseen import Aliases, Unrecordable, Unseen, follow, function_modes, has_subclass, plain
from traces.call_keys import recorded_key
from traces.overloads import bind, kind, written
from traces.writer import CallSite

if TYPE_CHECKING:
    from capture.mode import Mode

MAX_ERRORS = 20  # the recorder stops after this many errors of its own
ELSEWHERE = "in other steps or phases"


class Observer:
    """Counter of ATen calls that puts the wanted ones onto a tape.

    `Recorder` is an Observer with a `with` block and steps.

    Attributes:
        errors: The recorder's own errors by operator name: their count, and the message of the first.
        skipped: Numbers of calls that were not recorded, by reason.
    """

    def __init__(self, limits: Limits, model: torch.nn.Module | None, native: str | os.PathLike[str] | None) -> None:
        self.limits = limits
        self.errors: dict[str, dict[str, Any]] = {}
        self.skipped: Counter[str] = Counter()
        self._modules = ModuleTracker(model)
        self._flow = FlowTape() if self.limits.dataflow else None
        self._tape: Tape | None = None
        self._lock = threading.Lock()
        self._modes: dict[int, Mode] = {}  # by thread id
        self._whole: set[str] = set()  # names of composite operators that the device has kernels for
        self._plans: dict[int, CapturePlan] = {}  # by id of the operator
        self._entries: dict[Hashable, TapeEntry] = {}
        self._stored: Counter[str] = Counter()  # number of stored calls by overload name
        self._phases = Phases()
        self._settled = 1  # first step in which no new signature is expected
        self._steady: Known | None = None  # set once `_settled` is reached: known calls are then only tallied
        self._tallies = Tallies(maker(native))
        self._steps = Steps(self.limits)
        self._phases_wanted = frozenset(self.limits.phases)
        self._other_phases: set[str] = set()  # phases whose calls were not recorded
        self._seq = 0
        self._fence: tuple[int, Counter[str]] | None = None  # number of calls, and skipped calls, before doubtful steps
        self._recording = True

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

    def _drain(self) -> None:
        self._seq += self._tallies.drain(self._steps.number)

    def _follow_modules(self) -> None:
        """Track module calls only while new signatures are expected, because tracking takes time."""
        expected = self._steps.number < self._settled
        self._modules.start() if expected else self._modules.stop()

    def _plan(self, func: Any) -> CapturePlan:
        plan = self._plans.get(id(func))  # the plan keeps the operator alive, so its id is unique; its own hash is slow
        if plan is None:
            plan = CapturePlan(func, str(func), "")
            plan = self._guarded(plan.name, lambda: make_plan(func, self.limits.ops)) or plan
            self._plans[id(func)] = plan
        return plan

    def _before(self, plan: CapturePlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenCall | None:
        """Count a call that is about to happen. Return the work to do after it, or None."""
        if not self._recording or self._steps.over:
            return None
        with self._lock:  # `_guarded` is not used here, because every call takes this path
            try:
                if has_subclass(args) or (kwargs and has_subclass(kwargs.values())) or function_modes():
                    return self._observe_plain(plan, args, kwargs)
                return self._observe(plan, args, kwargs)
            except Unrecordable as reason:
                self.skipped[str(reason)] += 1
            except Exception as error:  # noqa: BLE001 - an error must not reach the training, see `_guarded`
                self._failed(plan.name, error)
            return None

    def _observe_plain(self, plan: CapturePlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenCall | None:
        aliases: Aliases = []
        with Unseen():
            seen = self._observe(plan, plain(args, aliases), plain(kwargs, aliases))
        return seen and replace(seen, aliases=aliases)

    def _after(self, seen: SeenCall, result: Any) -> None:
        """Store a call that has returned."""
        if self._recording:
            self._guarded(seen.plan.name, lambda: self._store(seen, result))

    def _discard(self, seen: SeenCall) -> None:
        """Discard a call that raised."""
        if self._recording and seen.tape is self._tape:
            self._guarded(seen.plan.name, partial(seen.discard, self._flow))

    def _guarded(self, operator: str, work: Callable[[], Any]) -> Any:
        with self._lock:
            try:
                with Unseen():
                    return work()
            except Exception as error:  # noqa: BLE001 - an error of the recorder must never reach the user's training
                self._failed(operator, error)
                return None

    def _note(self, operator: str, error: Exception) -> None:
        with self._lock:
            self._failed(operator, error)

    def _skip(self, plan: CapturePlan) -> None:
        if self._recording and not self._steps.over:
            with self._lock:
                self.skipped[plan.skipped or ""] += 1

    def _failed(self, operator: str, error: Exception) -> None:
        self.errors.setdefault(operator, {"count": 0, "first": f"{type(error).__name__}: {error}"[:200]})["count"] += 1
        if sum(e["count"] for e in self.errors.values()) >= MAX_ERRORS or isinstance(error, OSError):
            self._recording, self._steady = False, None  # a full disk will not recover by itself

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
            self.skipped[ELSEWHERE] += 1
            self._other_phases.add(phase)
            return None
        sim_device = sim.executing_device()
        key = recorded_key(plan.op if sim_device is None else (plan.op, sim_device), args, kwargs)
        entry = self._entries.get(key)
        if entry is None:
            with Unseen():
                entry = self._new_entry(key, plan, args, kwargs)
            if entry is None:
                if flow is not None:
                    flow.pass_by((args, kwargs))
                return None
        self._tallies.settle()  # flush the earlier tallies before this call is counted
        entry.signature.count(phase, steps.number)
        self._seq += 1
        settled = steps.number >= self._settled
        if flow is not None or entry.wanted or ((plan.produces or plan.mutates) and not settled):
            with Unseen():
                return self._look_closer(plan, entry, phase, bind(plan.op, args, kwargs), flow)
        # On `sim` the arguments are host tensors, so a key cannot tell the device's calls apart.
        if settled and sim_device is None:
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
            entry.wanted -= 1  # the count stays lower if this raises, because the next call would raise as well
            # 0: the first thread; 1: another thread, such as autograd's.
            thread = int(threading.get_ident() != next(iter(self._modes)))
            module_state = self._modules.current(), thread, torch.is_grad_enabled()
            site = CallSite(self._seq - 1, self._steps.number, phase, *module_state)
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
        device_fields = sim.executing_device() or place_of(arguments), sim.executing_device() == "cpu"
        signature = self._tape.signature(plan.name, kind(plan.op, arguments), describe(arguments), *device_fields)
        entry = self._entries[key] = TapeEntry(signature, self.limits.per_signature, [])
        if signature.kind != "view":  # slices of data at random positions add new signatures in every step
            self._settled, self._steady = self._steps.number + 2, None
        return entry

    def _store(self, seen: SeenCall, result: Any) -> None:
        if seen.tape is not self._tape:  # the trace was restarted
            return
        follow(seen.aliases)
        result = plain(result, list(seen.aliases))
        stored, wanted = None, seen.entry.wanted or seen.flow is not None
        if seen.sample is not None and not wanted:  # a nested call or another thread took the sample
            self._tape.discard(seen.sample)
        elif seen.sample is not None:
            seen.entry.wanted = max(seen.entry.wanted - 1, 0)
            self._stored[seen.plan.name] += 1
            stored = self._tape.commit(seen.sample, result)
        if seen.flow is not None and self._flow is not None:
            self._flow.end(seen.flow, result, stored)
        if seen.plan.produces:
            self._tape.follow(seen.inputs, result, seen.entry, seen.sample)
