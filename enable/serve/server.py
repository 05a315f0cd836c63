"""Answer ATen calls in this process with Triton kernels: which kernel, whether it may, and what was served how often.

Nothing here knows a kernel library or a store of verdicts (enable/library.py does), so that exported packages run the
same code.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload

from enable.serve import scratch
from enable.serve.arguments import ELSEWHERE, NUMBER, SPARSE, with_tensors
from enable.serve.decisions import Decision, Decisions, Refusal, asking
from enable.serve.entries import Entry
from enable.serve.floats import General, Handling, Watched, disguised, general, noted
from enable.serve.launches import launched
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
MAX_SHORTCUTS = 8  # of calls that are alike but for floats, such as learning rates


@dataclass
class Counts:
    """Calls. served: by overload. kernels: those by kernel file. unserved: by overload, and then by reason. unjudged:
    those of the served ones that are of no kind that the kernel was judged on, by overload, and then by what is new."""

    served: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    unserved: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unjudged: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


class Declined(Exception):
    """A wrapper raised and wrote nothing that the caller sees, so that the call can go on to another kernel.

    Attributes:
        early: whether it had launched nothing, so that what tensors contain did not matter.
    """

    def __init__(self, early: bool) -> None:
        self.early = early

    @property
    def error(self) -> BaseException:
        """What the wrapper raised."""
        assert self.__cause__ is not None
        return self.__cause__


class Server:
    """Serves calls on one device. A call that a running kernel's wrapper makes is not served: it would never end.

    Serving never makes a call fail: an error that a wrapper raises before its first launch declines the call, and so
    does NotImplementedError as long as nothing is written that the caller sees.
    """

    def __init__(
        self,
        entry_of: Callable[[str], Entry | None],
        device: str,
        only_judged: bool = False,
        native: Native | None = None,
        refuses: Refusal | None = None,
    ) -> None:
        """entry_of: how an overload is served, None if it is not. device: type of the tensors; `cpu` is `sim`'s too.
        only_judged: calls of kinds that the kernel was never judged on are not served. native: what is given the
        programs of calls that have a shortcut, to answer them before this is asked. refuses: returns ATen's error for a
        call, None if ATen takes it; it is asked about each call that a kernel would serve. By default ATen's meta
        functions are asked once about calls that are alike, and calls with an `out` of another dtype are not served.

        Raises UserError if Triton was imported to compile where it has to interpret, or the other way round.
        """
        set_up_triton(interpreted=device == "cpu")
        self._counts = Counts()
        self._native, self._programs = native, list[tuple[Any, _Ready]]()
        self._entry_of = cache(entry_of)
        self._wrapper_of = cache(load_wrapper)
        self._decisions = Decisions(self._entry_of, device, only_judged, refuses, self._clear)
        self._ready: dict[Hashable, _Ready | None] = {}
        self._general: dict[Hashable, _Ready] = {}  # by kind
        self._watched: dict[Hashable, Watched] = {}  # by kind, the latest
        self._device = device
        self._compiled, self._asks = device != "cpu", refuses is not None
        self._running = threading.local()

    @property
    def counts(self) -> Counts:
        """Of all calls until now."""
        for program, ready in list(self._programs):
            if calls := program.calls():
                self._count(ready.overload, ready.label, ready.news, calls)
        return self._counts

    @property
    def native(self) -> Native | None:
        """What answers calls before this server is asked."""
        return self._native

    def _count(self, overload: str, label: str, news: str, calls: int = 1) -> None:
        self._counts.served[overload] += calls
        self._counts.kernels[label] += calls
        if news:
            self._counts.unjudged[overload][news] += calls

    def answer(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A kernel's answer to this call, or MISS if it is not served. Both are counted."""
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
        """The answer to a call with numbers, or 0-dim tensors of the host, made tensors of the device; MISS if none."""
        if self._aside or self._decisions.of(op, args, kwargs).reason not in (NUMBER, ELSEWHERE):
            return MISS
        self._running.deep = True  # moving a number is no call of the program
        try:
            moved = with_tensors(op, args, kwargs, self._device)
        finally:
            self._running.deep = False
        if moved is None:
            return MISS
        _uncount(self._counts.unserved[name_of(op)], self._decisions.of(op, args, kwargs).reason)
        return self.answer(op, *moved)

    def find(
        self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], looked: Looked | None = None
    ) -> Callable[[], Any] | None:
        """What runs this call on a kernel, or None if it is not served. Both are counted.

        looked: what `looked_at` says of the call, if it was asked.
        """
        if self._aside:
            return None
        found, overload = self._decisions.of(op, args, kwargs), name_of(op)
        entry, reason = found.entry, found.reason
        if found.undrawn and _draws(op, args, kwargs):
            entry, reason = None, found.undrawn
        if entry is not None and (reason := self._decisions.objection(op, args, kwargs)):
            entry = None
        if entry is None:
            self._counts.unserved[overload][reason] += 1
            return None
        self._count(overload, entry.label, found.news)
        return lambda: self._run(entry, op, args, kwargs, found, looked)

    @property
    def compiles(self) -> bool:
        """Whether kernels are compiled for the device, rather than interpreted."""
        return self._compiled

    def directly(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        """What answers this call by its kernel's wrapper each time, uncounted; None if it is not served or draws.

        It raises Declined.
        """
        found = self._decisions.of(op, args, kwargs)
        entry = found.entry
        if entry is None or self._decisions.objection(op, args, kwargs) or (entry.draws and _draws(op, args, kwargs)):
            return None
        return partial(self._wrapped, entry, op, args, kwargs, found.gpu, None)

    def _decline(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], why: Declined) -> None:
        """Count a call as not served. After an early NotImplementedError no such call is asked of the wrapper again."""
        found, overload, reason = self._decisions.of(op, args, kwargs), name_of(op), DECLINED.format(why.error)
        self._counts.unserved[overload][reason] += 1
        if found.entry is not None:  # another thread may have been told first
            _uncount(self._counts.served, overload)
            _uncount(self._counts.kernels, found.entry.label)
            if why.early and isinstance(why.error, NotImplementedError):
                self._decisions.decline(op, args, kwargs, reason)

    @property
    def _aside(self) -> bool:
        """Whether this thread's calls are none of the program's."""
        return getattr(self._running, "deep", False) or asking()

    @property
    def declined(self) -> BaseException | None:
        """The error by which a wrapper declined a call in this thread, the latest one."""
        return getattr(self._running, "error", None)

    def takes_sparse(self, overload: str) -> bool:
        """Whether it may serve calls with sparse tensors."""
        entry = self._entry_of(overload)
        return entry is not None and SPARSE in entry.listed & entry.verified

    def reason(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Why such a call is not served; empty if it is, unless its wrapper declines it."""
        reason = self._decisions.of(op, args, kwargs).reason
        return reason or self._decisions.objection(op, args, kwargs)

    def _clear(self) -> None:
        for kept in (self._ready, self._general, self._watched):
            kept.clear()

    def _run(  # noqa: PLR0913 - the call, and what was found out about it
        self,
        entry: Entry,
        op: OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        found: Decision,
        looked: Looked | None,
    ) -> Any:
        """By the call's shortcut, or by the wrapper, which is watched for a shortcut the first few times."""
        tried, philox = found.tried, None
        if entry.draws and _draws(op, args, kwargs):
            philox = draw(kwargs.get("generator"), self._device, found.gpu)
        wrapped = partial(self._wrapped, entry, op, args, kwargs, found.gpu, philox)
        if not self._compiled:
            return wrapped()
        looked = looked or self._looked(op, args, kwargs)
        if looked.key is None:
            return wrapped()
        own = looked.drawing(philox[0], disguised(philox[1])) if philox else looked
        ready, answer = self._by_shortcut(looked, own)
        if answer is not MISS:
            return answer
        if ready is not None or own.key in self._ready or len(tried) >= MAX_SHORTCUTS:
            return wrapped()
        notes = Handling()
        answer, shortcut = watched(
            lambda: self._wrapped(entry, op, *noted(args, kwargs, notes), found.gpu, philox), looked.tensors
        )
        tried.append(own.key)
        if shortcut is not None:
            if written(op):
                shortcut = replace(shortcut, footprint=footprint_of(op, args, kwargs)[1])
            ready = self._kept(own, op, found, Watched(shortcut, own.floats, notes), philox)
        elif philox is None:
            self._ready[own.key] = None
        if ready is not None:
            self._offer(ready, looked)
        return answer

    def _looked(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Looked:
        """What the call is to its shortcuts; without tensors it may be for the device that is the current one."""
        looked = looked_at(id(op), args, kwargs)
        if looked.tensors or looked.key is None:
            return looked
        index = torch.accelerator.current_device_index() if self._device != "cpu" else None
        return looked._replace(key=(looked.key, index), kind=(looked.kind, index))

    def _by_shortcut(self, looked: Looked, own: Looked) -> tuple[_Ready | None, Any]:
        """The shortcut of such calls, if there is one, and its answer, MISS if it has none. own: with what is drawn."""
        ready = self._general.get(own.kind) if own.floats else None
        if ready is None or ready.general is None or not ready.general.fits(own.floats):
            ready = self._ready.get(own.key)
        if ready is None:
            return None, MISS
        floats = own.floats if ready.general else ()
        answer = ready.shortcut.run(own.tensors, ready.gpu, floats)
        if answer is not MISS:
            self._offer(ready, looked)
        return ready, answer

    def _kept(
        self, looked: Looked, op: OpOverload, found: Decision, now: Watched, philox: Philox | None
    ) -> _Ready | None:
        """For later calls like this one, none of which draws the same; with an earlier one perhaps for all that differ
        in floats."""
        ready = None
        if philox is None:
            ready = self._ready[looked.key] = self._prepared(op, found, now.shortcut)
        if looked.floats:
            before = self._watched.get(looked.kind)
            self._watched[looked.kind] = now
            same_draw = (
                philox is not None and before is not None and before.floats[-1] == now.floats[-1]
            )  # a seed again
            if before is not None and not same_draw and (of_all := general(before, now)) is not None:
                of_all = replace(of_all, seed=philox[0] if philox else None)
                ready = self._general[looked.kind] = self._prepared(op, found, of_all.shortcut, of_all)
        return ready

    def _prepared(self, op: OpOverload, found: Decision, shortcut: Shortcut, of_all: General | None = None) -> _Ready:
        assert found.entry is not None
        program = self._native.program(op, shortcut, of_all) if self._native else None
        ready = _Ready(shortcut, found.gpu, name_of(op), found.entry.label, found.news, program, of_all)
        if program is not None:
            self._programs.append((program, ready))
        return ready

    def _offer(self, ready: _Ready, looked: Looked) -> None:
        """Let later calls like this one be answered natively."""
        if self._native is not None and ready.program is not None and self._native.wanted():
            self._native.deposit(ready.program, looked)

    def _wrapped(  # noqa: PLR0913 - the call, and what was found out about it
        self,
        entry: Entry,
        op: OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        index: int | None,
        philox: Philox | None,
    ) -> Any:
        wrapper = self._wrapper(entry, entry.kernel)
        if self.compiles:
            scratch.allow()
        self._running.deep = True
        before = launched()
        try:
            with torch._C._AutoDispatchBelowAutograd(), _surroundings(self._device, index):
                if entry.draws:  # the wrapper does not see the generator
                    wrapper = bound(wrapper, philox or (0, 0))
                    kwargs = {name: None if name == "generator" else value for name, value in kwargs.items()}
                if entry.plan.direct:
                    return call_direct(op, wrapper, args, kwargs)
                if entry.plan.whole and args:
                    call_direct(op, wrapper, args, kwargs, out=args[0])
                    return None
                copy = self._wrapper(entry, entry.copy) if entry.copy else None
                warns = not self._asks  # ATen's kernel has warned already
                return call(entry.plan, bind(op, args, kwargs), wrapper, entry.takes_out, copy, warns=warns)
        except Exception as error:
            unwritten = entry.plan.written == "out" or not written(op)  # if out= is copied into at the end
            if launched() == before or (unwritten and isinstance(error, NotImplementedError)):
                raise Declined(launched() == before) from error
            raise
        finally:
            self._running.deep = False

    def _wrapper(self, entry: Entry, path: Path) -> Callable[..., Any]:
        """The wrapper of a file of the entry; the library's kernels answer what it calls of the library."""
        callees = entry.calls.get(path, {})
        return serving(
            self._wrapper_of(path, entry.texts.get(path)), {o: self._wrapper(entry, p) for o, p in callees.items()}
        )


class _Ready(NamedTuple):
    """A shortcut, the index of its device, and as what its calls are counted. news: as of their decision. program: the
    shortcut's, None if it has none. general: where it is for calls with other floats, too."""

    shortcut: Shortcut
    gpu: int | None
    overload: str
    label: str
    news: str = ""
    program: Any = None
    general: General | None = None


def _draws(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return False for a call that draws nothing, of an overload that may: then ATen leaves the generator alone."""
    values = bind(op, args, kwargs)
    trains = values.get("training", values.get("train")) is not False
    shape = getattr(values.get("self"), "shape", values.get("size", ()))
    return bool(values.get("dropout_p", 1.0) > 0) and trains and 0 not in shape


def _uncount(counter: Counter[str], counted: str) -> None:
    counter[counted] -= 1
    if not counter[counted]:
        del counter[counted]


def _surroundings(device: str, index: int | None) -> AbstractContextManager[Any]:
    """Launches go to the current GPU, so the arguments' has to be it; NumPy, which interprets, warns of infinities."""
    if device == "cpu":
        import numpy as np

        return np.errstate(all="ignore")
    if index is None or index == torch.accelerator.current_device_index():
        return nullcontext()
    return torch.accelerator.device_index(index)
