"""Implement `enable refine`: run the dialogs for one or for all failing operators, and accept the kernels."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enable.cover.session import Session
from enable.progress import say
from enable.providers import askable, unanswered
from enable.refine.dialogs import runs
from enable.refine.engine import Local
from enable.refine.holding import NOT_BEGUN, HeldDialogs, Holder, Terms, accepted
from enable.refine.refinement import Operator, Refinement
from enable.workspace import Workspace
from generate.llm import Options, load_provider
from generate.machine import FINAL, DialogLimits, Switches
from traces import UserError
from traces.program import program_words


@dataclass(frozen=True)
class RefineChoice:
    """The user's options for `enable refine`.

    Attributes:
        model: Trace name; None for all traces.
        op: Operator; None for all operators that fail in the coverage.
        only_failing: True to skip operators that pass.
        llm: Provider name.
        options: Provider options.
        limits: Dialog limits.
        again: Words after `enable` that repeat the command for other operators, without --restart.
        restart: True to begin new runs.
        few_cases: True if kernels may be accepted on fewer independent cases than usual.
    """

    model: str | None
    op: str | None
    only_failing: bool
    llm: str
    options: Options
    limits: DialogLimits
    again: tuple[str, ...]
    restart: bool = False
    few_cases: bool = False

    def command(self, operator: str) -> str:
        """Return the command that resumes one operator's run."""
        return shlex.join([*program_words(), *self.again, "--op", operator])

    def by_hand(self) -> str:
        """Return the command with the `manual` provider, which lets the user write the answers."""
        filters = [*(["--only-failing"] if self.only_failing else []), *(["--op", self.op] if self.op else [])]
        return shlex.join([*program_words(), *self.again, *filters, "--llm", "manual"])


def refine(workspace: Workspace, base: Path | None, platform: str, choice: RefineChoice) -> list[dict[str, Any]]:
    """Run the dialogs, and return one object for each operator, as `--json` prints them.

    Args:
        workspace: Workspace with traces and dialogs.
        base: Base library; None for the packaged one.
        platform: Platform name.
        choice: The user's options.

    Raises:
        UserError: If the user has to fix something first, for example if there is no trace.
    """
    names = [choice.model] if choice.model else workspace.trace_names()
    if not names:
        raise UserError(f"{workspace.traces} holds no trace yet; record one: {workspace.command('capture', 'nanogpt')}")
    provider = load_provider(choice.llm, choice.options)  # also if nothing is left to refine, a wrong name is an error
    with Session(workspace, base, platform) as session:
        refinement = Refinement(session, names, few_cases=choice.few_cases)
        operators = [refinement.operator(choice.op)] if choice.op else []
        begun = choice.op and not choice.restart and _is_begun(workspace, operators[0])
        if choice.op and not choice.restart and not begun and refinement.is_covered(operators[0]):
            say(f"{operators[0].overload}  passes every recorded case already; begin a dialog anyway: --restart")
            return []
        if choice.only_failing:
            failing = refinement.failing(names)
            operators = [o for o in failing if not choice.op or o in operators]
        answerable = askable(provider, [o.overload for o in operators], choice.by_hand())
        terms = Terms(choice.limits, Switches(), workspace.dialogs, choice.command)
        holder = Holder(refinement, provider, terms)
        rows = list(
            _run_dialogs(refinement, [o for o in operators if o.overload in answerable], holder, choice, provider.name)
        )
        return rows + [_not_begun(o.overload) for o in operators if o.overload not in answerable]


def _is_begun(workspace: Workspace, operator: Operator) -> bool:
    """Return True if the operator's latest run has not ended, such as one that --restart began."""
    dialog_runs = runs(workspace, operator.overload, "")
    return bool(dialog_runs) and dialog_runs[-1].state.stage not in FINAL


def _run_dialogs(
    refinement: Refinement, operators: list[Operator], holder: Holder, choice: RefineChoice, model: str
) -> Iterator[dict[str, Any]]:
    """Run the operators' dialogs one after the other, and yield a row for each."""
    by_name = {o.overload: o for o in operators}
    engine = Local(lambda overload: holder.hold(by_name[overload], choice.restart), workers=1)
    for result in engine.run(list(by_name)):
        yield row(*accepted(refinement, by_name[result.overload], result, model))


def _not_begun(overload: str) -> dict[str, Any]:
    """Return the row for an operator that the provider cannot answer for."""
    return row(HeldDialogs(overload, NOT_BEGUN, detail=unanswered([overload])), None)


def row(result: HeldDialogs, kernel: str | None) -> dict[str, Any]:
    """Return an operator's row for `--json`."""
    names = ("overload", "exit", "dialogs", "calls", "tokens", "detail")
    return {name: getattr(result, name) for name in names} | {"kernel": kernel}
