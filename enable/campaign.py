"""Refine one operator after the other and say how each ended."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enable.refinement import Operator, Refinement
from enable.session import Session
from enable.workspace import Workspace
from generate.dialog import Result, open_journal, refine_operator
from generate.llm import Options, Provider, load_provider
from generate.machine import Event, Kind, Limits, State
from traces import UserError
from verify.outcome import Outcome


@dataclass(frozen=True)
class Choice:
    """What the user asked for. model None: every trace. op None: all that coverage finds failing.

    again: the words after `enable` that ask for the same with other operators, without --restart.
    """

    model: str | None
    op: str | None
    only_failing: bool
    llm: str
    options: Options
    limits: Limits
    again: tuple[str, ...]
    restart: bool = False

    def command(self, operator: str) -> str:
        """What to type to go on with one operator."""
        return shlex.join(["enable", *self.again, "--op", operator])


def refine(workspace: Workspace, base: Path | None, platform: str, choice: Choice) -> list[dict[str, Any]]:
    """One object an operator, as `--json` prints them. Raises UserError for what the user has to mend first."""
    names = [choice.model] if choice.model else workspace.trace_names()
    if not names:
        raise UserError(f"{workspace.traces} holds no trace yet; record one: enable capture nanogpt")
    with Session(workspace, base, platform) as session:
        refinement = Refinement(session, names)
        operators = [refinement.operator(choice.op)] if choice.op else []
        if choice.op and not choice.restart and refinement.is_covered(operators[0]):
            _say(f"{operators[0].overload}  passes every recorded case already; --restart holds a dialog all the same")
            return []
        provider = load_provider(choice.llm, choice.options)
        if choice.only_failing:
            failing = refinement.failing(names)
            operators = [o for o in failing if not choice.op or o in operators]
        return [_refine_one(refinement, operator, provider, choice) for operator in operators]


def _refine_one(refinement: Refinement, operator: Operator, provider: Provider, choice: Choice) -> dict[str, Any]:
    result, directory = _hold(refinement, operator, provider, choice, choice.restart)
    if result.passed and not _passes(refinement, operator, result):
        _say(f"{operator.overload}  the kernel of an earlier run does not pass today; beginning anew")
        result, directory = _hold(refinement, operator, provider, choice, restart=True)
    accepted = refinement.accept(operator, result.source) if result.passed and result.source else None
    return {
        "overload": result.overload,
        "exit": "WAITING" if result.waiting else str(result.stage),
        "dialogs": result.dialogs,
        "calls": result.llm_calls,
        "tokens": result.tokens,
        "kernel": str(accepted) if accepted else None,
        "detail": _detail(result, directory),
    }


def _hold(
    refinement: Refinement, operator: Operator, provider: Provider, choice: Choice, restart: bool
) -> tuple[Result, Path]:
    """Hold or resume an operator's dialogs; the result, and where they are kept."""
    task = refinement.task(operator, choice.command(operator.overload))
    journal = open_journal(refinement.session.workspace.dialogs, task, choice.limits, restart=restart)
    try:
        if journal.dropped:
            _say(journal.dropped)
        tester = lambda source: refinement.test(operator, source)  # noqa: E731
        return refine_operator(task, provider, tester, journal, _report(task.overload)), journal.directory
    finally:
        journal.close()


def _passes(refinement: Refinement, operator: Operator, result: Result) -> bool:
    """Whether the accepted kernel passes now: a journal may be older than the trace or the judge. Verdicts are kept."""
    verdicts = refinement.test(operator, result.source or "")
    return bool(verdicts) and all(v.outcome is Outcome.PASS for v in verdicts)


def _detail(result: Result, directory: Path) -> str:
    return result.cause if result.cause else f"dialogs kept in {directory}; --restart begins anew"


def _report(overload: str) -> Any:
    """Tells each step on stderr as it is done."""

    def tell(state: State, event: Event) -> None:
        what = {
            Kind.PROMPTED: "prompt written",
            Kind.ANSWERED: "the model answered",
            Kind.LINT_CLEAN: "lint clean",
            Kind.LINT_REFUSED: f"lint: {len(event.report.splitlines())} lines of violations",
            Kind.TEST_PASSED: "every case passes",
            Kind.TEST_FAILED: ", ".join(f"{n} {outcome}" for outcome, n in event.counts.items()),
        }.get(event.kind)
        if what:
            _say(f"{overload}  dialog {state.dialog}, call {state.calls}: {what}")

    return tell


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
