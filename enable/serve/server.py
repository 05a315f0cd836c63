"""Answer ATen calls in this process with Triton kernels, and count the calls that each overload and kernel served.

The server chooses the kernel, checks that it may serve the call, and launches it. This module knows neither a kernel
library nor a verdict store (enable/library.py does), so that exported packages run the same code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload

from enable.serve import scratch
from enable.serve.arguments import ELSEWHERE, NUMBER, SPARSE, with_tensors
from enable.serve.backends import BACKENDS
from enable.serve.counts import Counts, uncount
from enable.serve.decisions import Decision, Decisions, Refusal, asking
from enable.serve.entries import Entry
from enable.serve.floats import General, Handling, Watched, disguised, general, noted
from enable.serve.launches import launched, surroundings
from enable.serve.modules import load_wrapper, set_up_triton
from enable.serve.native import Native
from enable.serve.overlap import footprint_of
from enable.serve.shortcuts import MISS, Looked, Shortcut, looked_at
from enable.serve.watching import watched
from traces.overloads import bind, name_of, written
from verify.contract.callees import serving
from verify.contract.derive import call, call_direct
from verify.contract.random_state import Philox, bound, draw

DECLINED = "its wrapper takes no such arguments: {}"
MAX_SHORTCUTS = 8  # per set of calls that differ only in floats, such as learning rates


class Declined(Exception):
    """Raised if a wrapper failed before it wrote anything visible, so that another kernel can serve the call.

    Attributes:
        early: True if the wrapper had launched nothing, so that tensor contents cannot have mattered.
    """

    def __init__(self, early: bool) -> None:
        self.early = early

    @property
    def error(self) -> BaseException:
        """Return the exception that the wrapper raised."""
        assert self.__cause__ is not None
        return self.__cause__


class Server:
    """Serves calls on one device. Calls that a running wrapper makes are not served, which prevents endless recursion.

    Serving never makes a call fail. An error that a wrapper raises before its first launch declines the call. So does
    NotImplementedError as long as nothing visible to the caller is written.
    """

    def __init__(
        self,
        entry_of: Callable[[str], Entry | None],
        device: str,
        only_judged: bool = False,
        native: Native | None = None,
        refuses: Refusal | None = None,
    ) -> None:
        """Set up Triton and the caches.

        Args:
            entry_of: Returns an overload's entry, or None if it is not served.
            device: Type of the tensors' device; `cpu` also stands for `sim`.
            only_judged: Refuse calls of kinds on which the kernel was never judged.
            native: Receives the programs of calls with a shortcut, to answer them before Python does.
            refuses: Returns ATen's error for a call, or None if ATen accepts it; it is asked about each call that a
                kernel would serve. By default ATen's meta functions are asked once per call key, and calls with an
                `out` of another dtype than the result are not served.

        Raises:
            UserError: Triton was imported to compile but has to interpret, or the reverse.
        """
        backend = BACKENDS[device]
        set_up_triton(backend.interpreted)
        self._counts = Counts()
        self._native, self._programs = native, list[tuple[Any, _Ready]]()
        self._entry_of = cache(entry_of)
        self._wrapper_of = cache(partial(load_wrapper, **backend.options))
        self._decisions = Decisions(self._entry_of, device, only_judged, refuses, self._clear)
        self._ready: dict[Hashable, _Ready | None] = {}
        self._general: dict[Hashable, _Ready] = {}  # by kind
        self._watched: dict[Hashable, Watched] = {}  # latest watched call by kind
        self._device = device
        self._compiled, self._asks = not backend.interpreted, refuses is not None
        self._running = threading.local()

    @property
    def counts(self) -> Counts:
        """Return the counts of all calls so far, including those that native programs answered."""
        for program, ready in list(self._programs):
            if calls := program.calls():
                self._count(ready.overload, ready.label, ready.news, calls)
        return self._counts

    @property
    def native(self) -> Native | None:
        """Return the native launcher that answers calls before this server, or None."""
        return self._native

    def _count(self, overload: str, label: str, news: str, calls: int = 1) -> None:
        """Count served calls."""
        self._counts.served[overload] += calls
        self._counts.kernels[label] += calls
        if news:
            self._counts.unjudged[overload][news] += calls

    def answer(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return a kernel's result for this call, or MISS if it is not served. Both outcomes are counted."""
        looked: Looked | None = None
        if self._compiled and not getattr(self._running, "deep", False):
            looked = self._looked(op, args, kwargs)
            ready, answer = self._by_shortcut(looked, looked)
            if ready is not None and answer is not MISS:
                self._count(ready.overload, ready.label, ready.news)
                return answer
        served = self.find(op, args, kwargs, looked)
        if served is None:
            return self._with_tensors(op, args, kwargs)
        try:
            return served()
        except Declined as declined:
            self._decline(op, args, kwargs, declined)
            self._running.error = declined.error
            return MISS

    def _with_tensors(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Move the call's numbers and 0-dim host tensors to the device and answer it, or return MISS."""
        if self._aside or self._decisions.of(op, args, kwargs).reason not in (NUMBER, ELSEWHERE):
            return MISS
        self._running.deep = True  # calls that move a number are not the program's and must not be served
        try:
            moved = with_tensors(op, args, kwargs, self._device)
        finally:
            self._running.deep = False
        if moved is None:
            return MISS
        uncount(self._counts.unserved[name_of(op)], self._decisions.of(op, args, kwargs).reason)
        return self.answer(op, *moved)

    def find(
        self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], looked: Looked | None = None
    ) -> Callable[[], Any] | None:
        """Return a function that runs this call on a kernel, or None if it is not served. Both outcomes are counted.

        `looked` is the result of `looked_at` if the caller already has it.
        """
        if self._aside:
            return None
        decision, overload = self._decisions.of(op, args, kwargs), name_of(op)
        entry, reason = decision.entry, decision.reason
        if decision.undrawn and _draws(op, args, kwargs):
            entry, reason = None, decision.undrawn
        if entry is not None and (reason := self._decisions.objection(op, args, kwargs)):
            entry = None
        if entry is None:
            self._counts.unserved[overload][reason] += 1
            return None
        self._count(overload, entry.label, decision.news)
        return lambda: self._run(entry, op, args, kwargs, decision, looked)

    @property
    def compiles(self) -> bool:
        """Return True if kernels are compiled for the device, not interpreted."""
        return self._compiled

    def directly(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        """Return a function that answers this call by its wrapper each time, uncounted. It may raise Declined.

        Return None if the call is not served or draws random numbers.
        """
        decision = self._decisions.of(op, args, kwargs)
        entry = decision.entry
        if entry is None or self._decisions.objection(op, args, kwargs) or (entry.draws and _draws(op, args, kwargs)):
            return None
        return partial(self._wrapped, entry, op, args, kwargs, decision.gpu, None)

    def _decline(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], why: Declined) -> None:
        """Count a call as not served.

        After an early NotImplementedError, calls with the same key never reach the wrapper again.
        """
        decision, overload, reason = self._decisions.of(op, args, kwargs), name_of(op), DECLINED.format(why.error)
        self._counts.unserved[overload][reason] += 1
        if decision.entry is not None:  # another thread may have declined it first
            uncount(self._counts.served, overload)
            uncount(self._counts.kernels, decision.entry.label)
            if why.early and isinstance(why.error, NotImplementedError):
                self._decisions.decline(op, args, kwargs, reason)

    @property
    def _aside(self) -> bool:
        """Return True if this thread's calls are not the program's."""
        return getattr(self._running, "deep", False) or asking()

    @property
    def declined(self) -> BaseException | None:
        """Return the latest error by which a wrapper declined a call in this thread, or None."""
        return getattr(self._running, "error", None)

    def takes_sparse(self, overload: str) -> bool:
        """Return True if the server may serve the overload's calls with sparse tensors."""
        entry = self._entry_of(overload)
        return entry is not None and SPARSE in entry.listed & entry.verified

    def reason(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return why the call is not served; empty if it is, unless its wrapper declines it."""
        reason = self._decisions.of(op, args, kwargs).reason
        return reason or self._decisions.objection(op, args, kwargs)

    def _clear(self) -> None:
        """Drop all shortcuts."""
        for cache_by_key in (self._ready, self._general, self._watched):
            cache_by_key.clear()

    def _run(  # noqa: PLR0913 - the call, and the decision about it
        self,
        entry: Entry,
        op: OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        decision: Decision,
        looked: Looked | None,
    ) -> Any:
        """Answer by the call's shortcut, or by the wrapper, which is watched for a shortcut the first few times."""
        tried, philox = decision.tried, None
        if entry.draws and _draws(op, args, kwargs):
            philox = draw(kwargs.get("generator"), self._device, decision.gpu)
        wrapped = partial(self._wrapped, entry, op, args, kwargs, decision.gpu, philox)
        if not self._compiled:
            return wrapped()
        looked = looked or self._looked(op, args, kwargs)
        if looked.key is None:
            return wrapped()
        exact_call = looked.drawing(philox[0], disguised(philox[1])) if philox else looked
        ready, answer = self._by_shortcut(looked, exact_call)
        if answer is not MISS:
            return answer
        if ready is not None or exact_call.key in self._ready or len(tried) >= MAX_SHORTCUTS:
            return wrapped()
        notes = Handling()
        answer, shortcut = watched(
            lambda: self._wrapped(entry, op, *noted(args, kwargs, notes), decision.gpu, philox), looked.tensors
        )
        tried.append(exact_call.key)
        if shortcut is not None:
            if written(op):
                shortcut = replace(shortcut, footprint=footprint_of(op, args, kwargs)[1])
            ready = self._kept(exact_call, op, decision, Watched(shortcut, exact_call.floats, notes), philox)
        elif philox is None:
            self._ready[exact_call.key] = None
        if ready is not None:
            self._offer(ready, looked)
        return answer

    def _looked(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Looked:
        """Return the call's shortcut keys. Without tensors the current device decides, so its index joins the keys."""
        looked = looked_at(id(op), args, kwargs)
        if looked.tensors or looked.key is None:
            return looked
        index = torch.accelerator.current_device_index() if self._device != "cpu" else None
        return looked._replace(key=(looked.key, index), kind=(looked.kind, index))

    def _by_shortcut(self, looked: Looked, exact_call: Looked) -> tuple[_Ready | None, Any]:
        """Return the matching shortcut, if any, and its result or MISS. `exact_call` includes the generator's state."""
        ready = self._general.get(exact_call.kind) if exact_call.floats else None
        if ready is None or ready.general is None or not ready.general.fits(exact_call.floats):
            ready = self._ready.get(exact_call.key)
        if ready is None:
            return None, MISS
        floats = exact_call.floats if ready.general else ()
        answer = ready.shortcut.run(exact_call.tensors, ready.gpu, floats)
        if answer is not MISS:
            self._offer(ready, looked)
        return ready, answer

    def _kept(
        self, looked: Looked, op: OpOverload, decision: Decision, now: Watched, philox: Philox | None
    ) -> _Ready | None:
        """Keep the shortcut for later calls, and generalize it to other floats if an earlier call allows that.

        A call that draws random numbers never repeats its counter, so only its general shortcut is kept.
        """
        ready = None
        if philox is None:
            ready = self._ready[looked.key] = self._prepared(op, decision, now.shortcut)
        if looked.floats:
            before = self._watched.get(looked.kind)
            self._watched[looked.kind] = now
            # the generator was reseeded; an equal counter would count as a fixed float
            same_draw = philox is not None and before is not None and before.floats[-1] == now.floats[-1]
            if before is not None and not same_draw and (of_all := general(before, now)) is not None:
                of_all = replace(of_all, seed=philox[0] if philox else None)
                ready = self._general[looked.kind] = self._prepared(op, decision, of_all.shortcut, of_all)
        return ready

    def _prepared(
        self, op: OpOverload, decision: Decision, shortcut: Shortcut, of_all: General | None = None
    ) -> _Ready:
        """Return the shortcut with its native program, if it has one."""
        assert decision.entry is not None
        program = self._native.program(op, shortcut, of_all) if self._native else None
        ready = _Ready(shortcut, decision.gpu, name_of(op), decision.entry.label, decision.news, program, of_all)
        if program is not None:
            self._programs.append((program, ready))
        return ready

    def _offer(self, ready: _Ready, looked: Looked) -> None:
        """Let the native module answer later calls like this one."""
        if self._native is not None and ready.program is not None and self._native.wanted():
            self._native.deposit(ready.program, looked)

    def _wrapped(  # noqa: PLR0913 - the call, and the decision about it
        self,
        entry: Entry,
        op: OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        index: int | None,
        philox: Philox | None,
    ) -> Any:
        """Run the wrapper and raise Declined if it failed without a visible write."""
        wrapper = self._wrapper(entry, entry.kernel)
        if self.compiles:
            scratch.allow()
        self._running.deep = True
        before = launched()
        try:
            with torch._C._AutoDispatchBelowAutograd(), surroundings(self._device, not self._compiled, index):
                if entry.draws:  # the wrapper gets key and counter in place of the generator
                    wrapper = bound(wrapper, philox or (0, 0))
                    kwargs = {name: None if name == "generator" else value for name, value in kwargs.items()}
                if entry.plan.direct:
                    return call_direct(op, wrapper, args, kwargs)
                if entry.plan.whole and args:
                    call_direct(op, wrapper, args, kwargs, out=args[0])
                    return None
                copy = self._wrapper(entry, entry.copy) if entry.copy else None
                warns = not self._asks  # `refuses` ran ATen's kernel, which has already warned
                return call(entry.plan, bind(op, args, kwargs), wrapper, entry.takes_out, copy, warns=warns)
        except Exception as error:
            unwritten = entry.plan.written == "out" or not written(op)  # `out` is written only by a copy at the end
            if launched() == before or (unwritten and isinstance(error, NotImplementedError)):
                raise Declined(launched() == before) from error
            raise
        finally:
            self._running.deep = False

    def _wrapper(self, entry: Entry, path: Path) -> Callable[..., Any]:
        """Return a file's wrapper, whose calls to operators of the library go to the entry's kernel files."""
        callees = entry.calls.get(path, {})
        return serving(
            self._wrapper_of(path, entry.texts.get(path)), {o: self._wrapper(entry, p) for o, p in callees.items()}
        )


class _Ready(NamedTuple):
    """A shortcut with its device index and the names under which its calls are counted.

    Attributes:
        news: Properties on which the kernel was never judged, from the decision.
        program: The shortcut's native program, or None.
        general: Conditions on the floats if it serves calls with other floats, or None.
    """

    shortcut: Shortcut
    gpu: int | None
    overload: str
    label: str
    news: str = ""
    program: Any = None
    general: General | None = None


def _draws(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return False if this call of a drawing overload draws nothing; ATen then leaves the generator unchanged."""
    values = bind(op, args, kwargs)
    trains = values.get("training", values.get("train")) is not False
    shape = getattr(values.get("self"), "shape", values.get("size", ()))
    return bool(values.get("dropout_p", 1.0) > 0) and trains and 0 not in shape
