"""Run the dialogs for one operator and return the result. Shared by `enable refine` and campaigns, on any engine."""

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

# Exits besides the final stages of the state machine:
WAITING = "WAITING"  # the run waits for an answer that a person or another program has to write
REFUSED = "REFUSED"  # the kernel passed, but the library had changed before it was accepted
NOT_BEGUN = "NOT_BEGUN"  # the provider cannot answer for this operator
TASK = "task.json"


@dataclass(frozen=True)
class Terms:
    """The conditions of an operator's dialogs.

    Attributes:
        limits: Limits on dialogs, calls and context.
        switches: The state machine's optional stages and their switches.
        home: Directory with the journals.
        command: Function from an overload to the command that resumes its run.
        once: If True, an operator has one run in `home`, with the task from its start. If False, a run is
            resumed only if its task is still the same today.
    """

    limits: DialogLimits
    switches: Switches
    home: Path
    command: Callable[[str], str]
    once: bool = False


@dataclass(frozen=True)
class HeldDialogs:
    """The result of an operator's dialogs.

    Attributes:
        overload: The operator.
        exit: A final stage, or WAITING, REFUSED or NOT_BEGUN.
        dialogs: Dialog count.
        calls: Count of calls to the model.
        tokens: Token count.
        detail: Cause of the exit, or the directory with the dialogs.
        source: The kernel's source, if it passed.
        tried: The kernel's trial; None if it took place in another process.
        journal: The journal's directory.
        task: The task's digest.
        seconds: Seconds spent by the model ("model"), by tests ("tests"), and in total ("all").
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
        """Return the provenance entries for the kernel's history."""
        return {"model": model, "journal": self.journal, "prompt": self.task, "calls": self.calls, **_versions()}


class Holder:
    """Runs the dialogs of a refinement's operators with one model. Safe to use from several threads."""

    def __init__(
        self, refinement: Refinement, model: Provider, terms: Terms, summarizer: Provider | None = None
    ) -> None:
        self._refinement, self._model, self._summarizer, self._terms = refinement, model, summarizer, terms

    def hold(self, operator: Operator, restart: bool = False) -> HeldDialogs:
        """Run or resume the operator's dialogs.

        If a kernel passed in an earlier run and does not pass today, a new run begins.
        """
        start = time.monotonic()
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
        spent = {**clock.spent, "all": time.monotonic() - start}
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
        """Open the journal for the operator's run.

        The task is the stored one if `once` is set and the run exists, otherwise a new one.
        """
        terms = self._terms
        task_file = terms.home / slug(operator.overload) / TASK
        if terms.once and task_file.is_file() and not restart:
            task = Task.load(task_file)
            if task.failing is not None:
                self._refinement.reveal(task.failing.case)
        else:
            task = self._refinement.task(operator, terms.command(operator.overload))
            if terms.once:
                task_file.parent.mkdir(parents=True, exist_ok=True)
                task.save(task_file)
        journal = open_journal(terms.home, task, terms.limits, terms.switches, restart)
        if journal.dropped:
            say(journal.dropped)
        return task, journal

    def _converse(
        self, operator: Operator, task: Task, journal: Journal, clock: _Clock
    ) -> tuple[Result, TriedKernel | None]:
        """Return the dialogs' result, and the kernel's trial if it passed."""
        last: list[TriedKernel] = []

        def test(source: str) -> Sequence[Verdict]:
            last[:] = [self._refinement.test(operator, source)]
            return last[0].verdicts

        tester = clock.timed("tests", test)
        model = _Timed(self._model, clock)
        debugger = clock.timed("tests", lambda source: self._refinement.debug(operator, source))
        summarizer = _Timed(self._summarizer, clock) if self._summarizer else None
        result = refine_operator(task, model, tester, journal, _report(task.overload), debugger, summarizer)
        if result.passed and not last:  # it passed in an earlier run, so that this process has no trial of it
            tester(result.source or "")
        return result, last[0] if result.passed else None


def _versions() -> dict[str, str]:
    """Return the versions of torch and triton."""
    import torch
    import triton

    return {"torch": torch.__version__, "triton": triton.__version__}


class _Clock:
    """Adds up elapsed seconds by activity."""

    def __init__(self) -> None:
        self.spent = {"model": 0.0, "tests": 0.0}

    def timed(self, activity: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return `work`, wrapped so that its duration is added to `activity`."""

        def run(*args: Any) -> Any:
            begun = time.monotonic()
            try:
                return work(*args)
            finally:
                self.spent[activity] += time.monotonic() - begun

        return run


class _Timed:
    """A provider whose calls count as "model" seconds."""

    def __init__(self, model: Provider, clock: _Clock) -> None:
        self.name = model.name
        self._complete = clock.timed("model", model.complete)

    def complete(self, request: Request) -> Answer:
        answer: Answer = self._complete(request)
        return answer


def accepted(
    refinement: Refinement, operator: Operator, result: HeldDialogs, model: str
) -> tuple[HeldDialogs, str | None]:
    """Put the kernel from an operator's dialogs in force, if it passed.

    Returns:
        The result and the kernel's path in the library. If the kernel is refused, the result has the exit
        REFUSED and the path is None.
    """
    if result.source is None:
        return result, None
    tried = result.tried or refinement.test(operator, result.source)
    decision = refinement.accept(tried, result.provenance(model))
    if isinstance(decision, Accepted):
        return result, os.fspath(decision.path)
    return replace(result, exit=REFUSED, detail=decision.reason, source=None, tried=None), None


def failed(overload: str, error: Exception) -> HeldDialogs:
    """Return the result for an operator whose dialogs could not be run."""
    return HeldDialogs(overload, "ABORTED", detail=" ".join(str(error).split()))


def _report(overload: str) -> OnEvent:
    """Return a callback that prints each completed step to stderr."""

    def tell(state: State, event: Event) -> None:
        description = {
            EventKind.PROMPTED: "prompt written",
            EventKind.ANSWERED: "the model answered",
            EventKind.LINT_CLEAN: "lint clean",
            EventKind.LINT_REFUSED: f"lint: {len(event.report.splitlines())} lines of violations",
            EventKind.TEST_PASSED: "every case passes",
            EventKind.TEST_FAILED: ", ".join(f"{n} {outcome}" for outcome, n in event.counts.items()),
        }.get(event.kind)
        if description:
            say(f"{overload}  dialog {state.dialog}, call {state.calls}: {description}")

    return tell
