"""Hold the dialogs of one operator, and say how that ended: what `refine` and campaigns share, on any engine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enable.progress import say
from enable.refine.acceptance import Accepted, TriedKernel
from enable.refine.refinement import Operator, Refinement
from generate.dialog import OnEvent, Result, open_journal, refine_operator
from generate.journal import Journal, slug
from generate.llm import Answer, Provider, Request
from generate.machine import DialogLimits, Event, EventKind, State, Switches
from generate.task import Task
from verify.outcome import Verdict

WAITING = "WAITING"  # exits besides the final stages: the model's answer is to be written by somebody
REFUSED = "REFUSED"  # it passed, and the library has changed meanwhile
NOT_BEGUN = "NOT_BEGUN"  # there is nobody to ask about it
TASK = "task.json"


@dataclass(frozen=True)
class Terms:
    """On which dialogs are held. home: where they are kept. command: what to type to go on with an operator.

    once: an operator has one run there, of the task with which it was begun; else a run is gone on with as long as its
    task is what it would be today.
    """

    limits: DialogLimits
    switches: Switches
    home: Path
    command: Callable[[str], str]
    once: bool = False


@dataclass(frozen=True)
class HeldDialogs:
    """How an operator's dialogs ended. exit: a final stage, or WAITING. source: the kernel, if it passed, and
    tried: its trial, unless that took place in another process.

    task: the digest of what was asked. seconds: spent by the model, by tests, and in all.
    """

    JSON = ("overload", "exit", "dialogs", "calls", "tokens", "detail", "journal", "task", "seconds")
    overload: str
    exit: str
    dialogs: int = 0
    calls: int = 0
    tokens: int = 0
    detail: str = ""
    source: str | None = None
    tried: TriedKernel | None = None
    journal: str = ""
    task: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.source is not None

    def provenance(self, model: str) -> dict[str, Any]:
        """What the kernel's history says of how it came about."""
        return {"model": model, "journal": self.journal, "prompt": self.task, "calls": self.calls, **_versions()}


class Holder:
    """Holds dialogs of a refinement's operators with a model. For any number of threads."""

    def __init__(
        self, refinement: Refinement, model: Provider, terms: Terms, summarizer: Provider | None = None
    ) -> None:
        self._refinement, self._model, self._summarizer, self._terms = refinement, model, summarizer, terms

    def hold(self, operator: Operator, restart: bool = False) -> HeldDialogs:
        """Run or resume the operator's dialogs. A kernel that passed then and does not today is begun anew."""
        begun = time.monotonic()
        clock = _Clock()
        task, journal = self._open(operator, restart)
        try:
            result, tried = self._converse(operator, task, journal, clock)
            if tried is not None and not tried.passed:
                say(f"{operator.overload}  the kernel of an earlier run does not pass today; beginning anew")
                journal.close()
                task, journal = self._open(operator, restart=True)
                result, tried = self._converse(operator, task, journal, clock)
        finally:
            journal.close()
        spent = {**clock.spent, "all": time.monotonic() - begun}
        return HeldDialogs(
            overload=result.overload,
            exit=WAITING if result.waiting else str(result.stage),
            dialogs=result.dialogs,
            calls=result.llm_calls,
            tokens=result.tokens,
            detail=result.cause or f"dialogs kept in {journal.directory}; --restart begins anew",
            source=result.source if result.passed else None,
            tried=tried,
            journal=str(journal.directory),
            task=task.digest(),
            seconds={name: round(value, 3) for name, value in spent.items()},
        )

    def _open(self, operator: Operator, restart: bool) -> tuple[Task, Journal]:
        terms = self._terms
        kept = terms.home / slug(operator.overload) / TASK
        if terms.once and kept.is_file() and not restart:
            task = Task.load(kept)
            if task.failing is not None:
                self._refinement.reveal(task.failing.case)
        else:
            task = self._refinement.task(operator, terms.command(operator.overload))
            if terms.once:
                kept.parent.mkdir(parents=True, exist_ok=True)
                task.save(kept)
        journal = open_journal(terms.home, task, terms.limits, terms.switches, restart)
        if journal.dropped:
            say(journal.dropped)
        return task, journal

    def _converse(
        self, operator: Operator, task: Task, journal: Journal, clock: _Clock
    ) -> tuple[Result, TriedKernel | None]:
        """Return how the dialogs ended, and the trial of the kernel if it passed."""
        last: list[TriedKernel] = []

        def test(source: str) -> Sequence[Verdict]:
            last[:] = [self._refinement.test(operator, source)]
            return last[0].verdicts

        tester = clock.timed("tests", test)
        model = _Timed(self._model, clock)
        debugger = clock.timed("tests", lambda source: self._refinement.debug(operator, source))
        summarizer = _Timed(self._summarizer, clock) if self._summarizer else None
        result = refine_operator(task, model, tester, journal, _report(task.overload), debugger, summarizer)
        if result.passed and not last:  # in an earlier run
            tester(result.source or "")
        return result, last[0] if result.passed else None


def _versions() -> dict[str, str]:
    import torch
    import triton

    return {"torch": torch.__version__, "triton": triton.__version__}


class _Clock:
    """Adds up seconds by what they went into."""

    def __init__(self) -> None:
        self.spent = {"model": 0.0, "tests": 0.0}

    def timed(self, what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            begun = time.monotonic()
            try:
                return work(*args)
            finally:
                self.spent[what] += time.monotonic() - begun

        return run


class _Timed:
    def __init__(self, model: Provider, clock: _Clock) -> None:
        self.name = model.name
        self._complete = clock.timed("model", model.complete)

    def complete(self, request: Request) -> Answer:
        answer: Answer = self._complete(request)
        return answer


def accepted(
    refinement: Refinement, operator: Operator, held: HeldDialogs, model: str
) -> tuple[HeldDialogs, str | None]:
    """Return the kernel's path in the library; or, if it was refused, that as the operator's exit."""
    if held.source is None:
        return held, None
    tried = held.tried or refinement.test(operator, held.source)
    found = refinement.accept(tried, held.provenance(model))
    if isinstance(found, Accepted):
        return held, os.fspath(found.path)
    return replace(held, exit=REFUSED, detail=found.reason, source=None, tried=None), None


def failed(overload: str, error: Exception) -> HeldDialogs:
    """Of an operator that could not be worked on."""
    return HeldDialogs(overload, "ABORTED", detail=" ".join(str(error).split()))


def _report(overload: str) -> OnEvent:
    """Tells each step on stderr as it is done."""

    def tell(state: State, event: Event) -> None:
        what = {
            EventKind.PROMPTED: "prompt written",
            EventKind.ANSWERED: "the model answered",
            EventKind.LINT_CLEAN: "lint clean",
            EventKind.LINT_REFUSED: f"lint: {len(event.report.splitlines())} lines of violations",
            EventKind.TEST_PASSED: "every case passes",
            EventKind.TEST_FAILED: ", ".join(f"{n} {outcome}" for outcome, n in event.counts.items()),
        }.get(event.kind)
        if what:
            say(f"{overload}  dialog {state.dialog}, call {state.calls}: {what}")

    return tell
