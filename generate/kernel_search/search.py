"""Run the search for a faster kernel: select the next candidate, run its dialog, and time it.

Everything is written to a journal before it takes effect. In `<workspace>/tune/<operator>/run-NNN/`, journal.jsonl
records the start and end of each node, and nodes/KKK/ contains its dialog (generate/dialog.py), with lint, tests and
feedback as usual. A killed run resumes with its unfinished node.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from generate.dialog import OnEvent, Result, Tester, open_journal, refine_operator
from generate.journal import NAME, Journal, Record, open_run, slug
from generate.kernel_search.advice import explain_times
from generate.kernel_search.measurement import FASTER, ROUNDS, SLOWER, Gain, Measurement, TimedShape, gain
from generate.kernel_search.skills import MOST_TEXT, Skill
from generate.kernel_search.tree import Move, Tree, TreeNode
from generate.llm import FREE, Answer, Price, Provider, Request, Waiting
from generate.llm.budget import Budget, Budgeted, charge_runs
from generate.machine import DialogLimits, EventKind, Stage, Switches
from generate.prompts import searching
from generate.recording import to_recording
from generate.task import Task
from generate.validation import validated
from traces import UserError, jsonable

CALLS = 4  # LLM answers within which a candidate has to become correct
LOST = "LOST"  # outcome for a candidate that is correct but could not be timed
_LEARNED = re.compile(r"^Learned: *(.+)$", re.MULTILINE)

TextTimer = Callable[[Sequence[str], int], Measurement]  # from kernel files (the first is in force) and rounds


class TimingFailed(UserError):
    """A kernel could not be timed; the text gives the reason in one line."""


@dataclass(frozen=True)
class SearchLimits:
    """The limits for all candidates together; None is no limit.

    Attributes:
        calls: LLM calls.
        tokens: Tokens.
        money: Money.
        minutes: Minutes over all runs of the search.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    minutes: float | None = None

    def budget(self) -> Budget:
        """Return a budget with the limits on calls, tokens and money."""
        return Budget(self.calls, self.tokens, self.money)


@dataclass(frozen=True)
class SearchEnd:
    """The end of a run.

    Attributes:
        why: Reason.
        waiting: Set if an answer has to be written by hand.
        failed: True if the model could not answer.
    """

    why: str
    waiting: Waiting | None = None
    failed: bool = False


@dataclass
class Search:
    """One search.

    Attributes:
        base: Task for the kernel in force, which passes.
        journal: The search's journal.
        model: Provider.
        tester: Judges a kernel.
        timer: Times kernel files on `shapes`.
        shapes: Shapes.
        limits: Limits.
        price: Price per million tokens.
        skills: Lessons from earlier searches to show in prompts.
        on_event: Callback after each transition in a dialog.
        tree: Candidates.
        measured: Measurements by node number.
    """

    base: Task
    journal: Journal
    model: Provider
    tester: Tester
    timer: TextTimer
    shapes: Sequence[TimedShape]
    limits: SearchLimits
    price: Price = FREE
    skills: Sequence[Skill] = ()
    on_event: OnEvent | None = None
    tree: Tree = field(default_factory=Tree)
    measured: dict[int, Measurement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._budget, self._spent = self.limits.budget(), 0.0
        for record in self.journal.records:
            if "ended" in record:
                self._take(record)
        for home in sorted(self._nodes.glob("*")):
            charge_runs(self._budget, home, self.price)

    @property
    def _nodes(self) -> Path:
        """Return the directory with the nodes' dialogs."""
        return self.journal.directory / "nodes"

    @property
    def used(self) -> dict[str, Any]:
        """Return calls, tokens and money over all runs."""
        return {"calls": self._budget.calls, "tokens": self._budget.tokens, "money": self._budget.money}

    def run(self) -> SearchEnd:
        """Grow the tree until a limit is reached, an answer has to be written by hand, or the model fails.

        An unfinished node is completed first, even if the budget is spent, because its answers may exist and be
        paid for. Exceptions from the tester, or from the timer on the kernel in force, pass through; the
        journal stays resumable.
        """
        if not self.tree.nodes:
            self.time_root()
        while "begun" in self.journal.records[-1] or not (why := self._over()):
            end = self._grow(self._begun())
            if isinstance(end, SearchEnd):
                return end
        return SearchEnd(why)

    def record(self) -> None:
        """Write the dialogs to recording/, for the providers that replay."""
        journals = sorted(self._nodes.glob(f"*/*/run-*/{NAME}"))
        if journals:
            target = self.journal.directory / "recording" / f"{slug(self.base.overload)}.jsonl"
            to_recording(journals[0], target, *journals[1:])

    def gain(self, number: int) -> Gain:
        """Return the gain for a node that was timed."""
        return gain(self.measured[number], 1)

    def _take(self, record: Record) -> None:
        """Add a finished node from a journal record."""
        node = validated(TreeNode, record["ended"])
        self.tree.nodes.append(node)
        self._spent += record["seconds"]
        if record["measured"] is not None:
            self.measured[node.number] = Measurement.of_json(record["measured"], str(self.journal.path))

    def _end(self, node: TreeNode, measured: Measurement | None, begun: float) -> None:
        """Record a finished node in the journal, and add it."""
        seconds = time.monotonic() - begun
        self.journal.append(jsonable({"ended": node, "measured": measured, "seconds": seconds}))
        self._take(self.journal.records[-1])

    def time_root(self) -> None:
        """Time the kernel in force, which is the root."""
        begun = time.monotonic()
        assert self.base.source is not None  # there is a kernel in force
        measured = self.timer([self.base.source], ROUNDS)
        reward = measured.ratio(self.shapes, 0)
        self._end(TreeNode(0, Move.ROOT, (), Stage.PASSED, self.base.source, reward, mean=1.0), measured, begun)

    def _over(self) -> str:
        """Return the limit that is reached, in words; '' if there is none."""
        for name, left in self._budget.left().items():
            if left is not None and left <= 0:
                return f"the budget of {getattr(self.limits, name):g} {name} is spent"
        minutes = self.limits.minutes
        return f"{minutes:g} minutes are over" if minutes is not None and self._spent >= 60 * minutes else ""

    def _begun(self) -> Record:
        """Return the record for the unfinished node, or start the next node.

        The record includes the skills shown, so that the resumed node gets the same prompt.
        """
        last = self.journal.records[-1]
        if "begun" not in last:
            move, parents = self.tree.next()
            skills = [skill.line for skill in self.skills]
            begun = {"begun": len(self.tree.nodes), "move": str(move), "parents": list(parents), "skills": skills}
            self.journal.append(begun)
            last = self.journal.records[-1]
        return last

    def _grow(self, record: Record) -> SearchEnd | None:
        """Run one node's dialog and time its kernel; return the end if the run has to stop."""
        start, number = time.monotonic(), record["begun"]
        move, parents = Move(record["move"]), tuple(record["parents"])
        task = self._task(move, parents, record["skills"])
        dialog = open_journal(self._nodes / f"{number:03d}", task, _OF_NODE)
        try:
            before = sum(node.calls for node in self.tree.nodes)
            model = Budgeted(_Within(self.model, before, self.journal.directory), self._budget, self.price)
            result = refine_operator(task, model, self.tester, dialog, self.on_event)
            learned = _learned(dialog.records)
        finally:
            dialog.close()
        if result.waiting or result.stage is Stage.ABORTED:
            why = self._over() or result.cause
            return SearchEnd(why, result.waiting, failed=not self._over() and not result.waiting)
        node = TreeNode(number, move, parents, str(result.stage), learned=learned, calls=result.llm_calls)
        self._end(*self._timed(node, result), start)
        return None

    def _timed(self, node: TreeNode, result: Result) -> tuple[TreeNode, Measurement | None]:
        """Return the node with its times; a kernel that cannot be timed is LOST."""
        if not result.passed or result.source is None:
            return replace(node, detail=result.message), None
        node = replace(node, source=result.source)
        try:
            measured = self.timer([self.base.source or "", result.source], ROUNDS)
        except TimingFailed as error:
            return replace(node, outcome=LOST, detail=str(error)), None
        result_gain = gain(measured, 1)
        reward = measured.ratio(self.shapes, 1)
        return replace(
            node, reward=reward, mean=result_gain.mean, noise=result_gain.noise, detail=result_gain.refusal
        ), measured

    def _task(self, move: Move, parents: tuple[int, ...], skills: Sequence[str]) -> Task:
        """Return the task for the next node, with the search's text."""
        nodes = [self.tree.nodes[n] for n in parents]
        second = nodes[1] if len(nodes) > 1 else None
        device = self.measured[0].device
        text = searching(
            move=str(move),
            explanation=self._explain(nodes[0]),
            second=second.source if second else "",
            second_explanation=self._explain(second) if second else "",
            candidates=self._candidate_lines() if move is Move.COMPARE else [],
            skills=skills,
            target=device.target,
            processors=device.processors,
            bandwidth=f"{device.bandwidth / 1e3:.0f}",
            launch=f"{device.launch:.1f}",
            faster=f"{FASTER - 1:.0%}",
            slower=f"{SLOWER - 1:.0%}",
        )
        source = None if move is Move.ANEW else nodes[0].source
        return replace(self.base, source=source, failing=None, search=text)

    def _explain(self, node: TreeNode) -> str:
        """Return the explanation for a node's times."""
        measured = self.measured[node.number]
        times = measured.times[-1]
        return explain_times(measured.device, self.shapes, [times[s.name] for s in self.shapes], measured.profile)

    def _candidate_lines(self) -> list[str]:
        """Return a line for each candidate so far."""
        return [self._line(node) for node in self.tree.nodes[1:]]

    def _line(self, node: TreeNode) -> str:
        """Return a candidate's line: its outcome, or its gains on up to six shapes and its lesson."""
        if not node.right:
            return f"candidate {node.number} ({node.move}): {node.outcome}"
        ranked = sorted(self.gain(node.number).shapes.items(), key=lambda item: item[1])
        shown = ranked if len(ranked) <= 6 else [*ranked[:3], *ranked[-3:]]
        shapes = "; ".join(f"{name}: {value:.2f}" for name, value in shown)
        return f"candidate {node.number} ({node.move}): {node.mean:.2f}. {shapes}. {node.learned}".strip()


_OF_NODE = DialogLimits(dialogs=1, calls=CALLS)


def open_search(home: Path, task: Task, shapes: Sequence[TimedShape], skills: bool, restart: bool = False) -> Journal:
    """Return the journal for a search from this kernel on these shapes: the last run if it matches, or a new one.

    Args:
        home: Directory with the searches.
        task: Task for the kernel in force.
        shapes: Shapes.
        skills: True if prompts show lessons from earlier searches.
        restart: True for a new run in any case.
    """
    header = {
        "overload": task.overload,
        "task": task.digest(),
        "shapes": sorted(shape.name for shape in shapes),
        "limits": asdict(_OF_NODE),
        "switches": {**asdict(Switches()), "skills": skills},
    }
    return open_run(home, header, restart)


class _Within:
    """A provider that numbers its calls across all dialogs in a search, and keeps its files in one directory."""

    def __init__(self, model: Provider, before: int, directory: Path) -> None:
        self.name = model.name
        self._model, self._before, self._directory = model, before, directory

    def complete(self, request: Request) -> Answer:
        """Return the model's answer to the renumbered request."""
        moved = replace(request, number=self._before + request.number, directory=self._directory)
        return self._model.complete(moved)


def _learned(records: Sequence[Record]) -> str:
    """Return the last answer's lesson, from its line `Learned: ...`; '' if there is none."""
    answers = [r.get("text", "") for r in records if r.get("event") == EventKind.ANSWERED]
    lessons = _LEARNED.findall(answers[-1]) if answers else []
    return lessons[-1].strip()[:MOST_TEXT] if lessons else ""
