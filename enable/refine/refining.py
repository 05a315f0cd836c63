"""`enable refine`: the dialogs of one operator, or of all that coverage finds failing, and what becomes of them."""

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


@dataclass(frozen=True)
class RefineChoice:
    """What the user asked for. model None: every trace. op None: all that coverage finds failing.

    again: the words after `enable` that ask for the same with other operators, without --restart. few_cases: kernels
    are accepted on fewer independent cases than it takes otherwise.
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
        """What to type to go on with one operator."""
        return shlex.join(["enable", *self.again, "--op", operator])

    def by_hand(self) -> str:
        """What to type to be the model oneself."""
        what = [*(["--only-failing"] if self.only_failing else []), *(["--op", self.op] if self.op else [])]
        return shlex.join(["enable", *self.again, *what, "--llm", "manual"])


def refine(workspace: Workspace, base: Path | None, platform: str, choice: RefineChoice) -> list[dict[str, Any]]:
    """One object an operator, as `--json` prints them. Raises UserError for what the user has to mend first."""
    names = [choice.model] if choice.model else workspace.trace_names()
    if not names:
        raise UserError(f"{workspace.traces} holds no trace yet; record one: {workspace.command('capture', 'nanogpt')}")
    with Session(workspace, base, platform) as session:
        refinement = Refinement(session, names, few_cases=choice.few_cases)
        operators = [refinement.operator(choice.op)] if choice.op else []
        begun = choice.op and not choice.restart and _is_begun(workspace, operators[0])
        if choice.op and not choice.restart and not begun and refinement.is_covered(operators[0]):
            say(f"{operators[0].overload}  passes every recorded case already; --restart holds a dialog all the same")
            return []
        provider = load_provider(choice.llm, choice.options)
        if choice.only_failing:
            failing = refinement.failing(names)
            operators = [o for o in failing if not choice.op or o in operators]
        asked = askable(provider, [o.overload for o in operators], choice.by_hand())
        terms = Terms(choice.limits, Switches(), workspace.dialogs, choice.command)
        holder = Holder(refinement, provider, terms)
        found = list(_held(refinement, [o for o in operators if o.overload in asked], holder, choice, provider.name))
        return found + [_not_begun(o.overload) for o in operators if o.overload not in asked]


def _is_begun(workspace: Workspace, operator: Operator) -> bool:
    """Whether a dialog about it waits to be gone on with, as one that --restart began."""
    found = runs(workspace, operator.overload, "")
    return bool(found) and found[-1].state.stage not in FINAL


def _held(
    refinement: Refinement, operators: list[Operator], holder: Holder, choice: RefineChoice, model: str
) -> Iterator[dict[str, Any]]:
    by_name = {o.overload: o for o in operators}
    engine = Local(lambda overload: holder.hold(by_name[overload], choice.restart), workers=1)
    for held in engine.run(list(by_name)):
        yield row(*accepted(refinement, by_name[held.overload], held, model))


def _not_begun(overload: str) -> dict[str, Any]:
    return row(HeldDialogs(overload, NOT_BEGUN, detail=unanswered([overload])), None)


def row(held: HeldDialogs, kernel: str | None) -> dict[str, Any]:
    """What `--json` tells of an operator."""
    names = ("overload", "exit", "dialogs", "calls", "tokens", "detail")
    return {name: getattr(held, name) for name in names} | {"kernel": kernel}
