"""Drive the state machine for one operator: call the model, lint, test and give feedback until an exit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from generate import BLOCKS, prompts
from generate.journal import Journal, open_run
from generate.llm import Answer, ContextOverflow, Message, Provider, ProviderError, Request, Waiting
from generate.machine import FINAL, DialogLimits, Event, EventKind, Flaw, Stage, State, Switches, step
from generate.task import Task
from verify.lint import lint, load_profile, render, take_source
from verify.outcome import LINT, NO_CASE, UNREACHED, Outcome, Verdict

SUMMARY_INPUT = 60_000  # maximum characters of a report in the prompt for the summarizing model
KEPT = 4_000  # characters, head and tail together, that are kept of an answer that is too long

OnEvent = Callable[[State, Event], None]
Debugger = Callable[[str], str]  # from the source of a crashed kernel to a report; '' if the cause is unknown


class Tester(Protocol):
    """Judges a kernel file's source on every case for the operator."""

    def __call__(self, source: str, /) -> Sequence[Verdict]: ...


@dataclass(frozen=True)
class Result:
    """A run's result.

    Attributes:
        overload: The operator.
        stage: The state machine's last stage.
        source: Latest kernel; the accepted one if `passed`.
        dialogs: Number of dialogs.
        llm_calls: Number of calls to models.
        tokens: Number of tokens.
        cause: Cause of the exit, or the next step for the user.
        waiting: Set if the run waits for an answer in a file; the same command then resumes it.
    """

    overload: str
    stage: Stage
    source: str | None
    dialogs: int
    llm_calls: int
    tokens: int
    cause: str = ""
    waiting: Waiting | None = None

    @property
    def passed(self) -> bool:
        return self.stage is Stage.PASSED

    @property
    def message(self) -> str:
        """Return one line for the user."""
        calls = f"{self.llm_calls} LLM calls, {self.dialogs} dialogs"
        return f"{self.overload}: {self.stage} after {calls}" + (f": {self.cause}" if self.cause else "")


def open_journal(
    dialogs: Path,
    task: Task,
    limits: DialogLimits | None = None,
    switches: Switches | None = None,
    restart: bool = False,
) -> Journal:
    """Return the journal to resume, if the last run had the same task, limits and switches; otherwise a new one.

    Args:
        dialogs: Directory with the workspace's dialogs.
        task: The task.
        limits: Limits; None for the defaults.
        switches: Switches; None for the defaults.
        restart: True for a new journal in any case.
    """
    header = {
        "overload": task.overload,
        "task": task.digest(),
        "limits": asdict(limits or DialogLimits()),
        "switches": asdict(switches or Switches()),
    }
    return open_run(dialogs, header, restart)


def refine_operator(  # noqa: PLR0913 - what a dialog needs
    task: Task,
    model: Provider,
    tester: Tester,
    journal: Journal,
    on_event: OnEvent | None = None,
    debugger: Debugger | None = None,
    summarizer: Provider | None = None,
) -> Result:
    """Run or resume the dialogs for one operator, with the limits and switches in the journal.

    If a model cannot answer, the run ends in ABORTED with the cause, and the same call resumes it later.
    Exceptions from the tester or debugger and KeyboardInterrupt pass through; the journal stays resumable.

    Args:
        task: The task.
        model: Provider that writes kernels.
        tester: Judges a kernel.
        journal: The run's journal.
        on_event: Callback after each transition.
        debugger: Explains a crash; None to use the judge's report instead.
        summarizer: Provider that summarizes long reports; None for `model`.
    """
    run = _Run(task, (model, summarizer or model), (tester, debugger), journal, on_event)
    waiting = None
    try:
        run.to_exit()
    except Waiting as stop:
        waiting = stop
    s = run.state
    cause = f"{waiting}, then run: {task.command}" if waiting else s.cause
    dialogs = min(s.dialog, s.limits.dialogs)
    return Result(task.overload, s.stage, s.source, dialogs, s.llm_calls, s.tokens, cause, waiting)


class _Run:
    """A run in progress: the state machine's state, and everything that its transitions need."""

    def __init__(
        self,
        task: Task,
        models: tuple[Provider, Provider],
        judges: tuple[Tester, Debugger | None],
        journal: Journal,
        on_event: OnEvent | None,
    ) -> None:
        self.task, self.journal = task, journal
        self.model, self.summarizer = models
        self.tester, self.debugger = judges
        self.on_event = on_event or (lambda state, event: None)
        self.switches = Switches(**journal.header["switches"])
        self.profile = load_profile(task.profile).with_calls(task.calls).with_blocks(BLOCKS)
        self.state = journal.fold(State(DialogLimits(**journal.header["limits"])))
        if self.state.stage is Stage.ABORTED:
            journal.append({"resumed": self.state.cause})
            self.state = journal.fold(State(self.state.limits))

    def to_exit(self) -> None:
        """Work until a final stage; each event is in the journal before it takes effect."""
        while self.state.stage not in FINAL:
            event = self._work()
            self.journal.append_event(event)
            self.state = step(self.state, event)
            self.on_event(self.state, event)

    def _work(self) -> Event:
        """Do the current stage's work, and return the event."""
        match self.state.stage:
            case Stage.PROMPT:
                return Event(EventKind.PROMPTED, messages=prompts.opening(self.task, self.state))
            case Stage.GENERATE:
                return self._generate()
            case Stage.LINT:
                return self._lint()
            case Stage.TEST:
                return self._test()
            case Stage.FEEDBACK:
                return self._feedback()
            case Stage.SUMMARIZE:
                return self._summarize()
            case Stage.DEBUG:
                return self._debug()
            case _:
                return Event(EventKind.DIALOG_ENDED)

    def _ask(self, model: Provider, messages: tuple[Message, ...], purpose: str) -> Answer:
        """Send a request to a model, after it was recorded in the journal."""
        request = Request(
            messages=messages,
            temperature=self.state.limits.temperature,
            purpose=purpose,
            number=self.state.llm_calls + 1,
            directory=self.journal.directory,
        )
        self.journal.append_request(request, model.name, self.task.command)
        return model.complete(request)

    def _generate(self) -> Event:
        """Ask the model for a kernel; an oversized answer is cut in its middle."""
        try:
            answer = self._ask(self.model, self.state.messages, "generate")
        except ContextOverflow:
            return Event(EventKind.CONTEXT_FULL)
        except ProviderError as error:
            return Event(EventKind.FAILED, text=str(error))
        oversized = len(answer.text) > self.state.limits.answer
        return Event(
            EventKind.ANSWERED,
            text=prompts.cut_middle(answer.text, KEPT) if oversized else answer.text,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            reasoning=prompts.cut_middle(answer.reasoning, self.state.limits.answer),
            cut=answer.cut,
            size=len(answer.text) if oversized else answer.size,
        )

    def _lint(self) -> Event:
        """Extract the kernel file from the answer and lint it."""
        source, violation = take_source(self.state.messages[-1].content, self.profile)
        if source is None or self.state.size > self.state.limits.answer:
            return Event(EventKind.UNUSABLE, outcome=self._flaw(), report=str(violation or ""))
        if any(t.source == source for t in self.state.tried):
            return Event(EventKind.REPEATED, source=source)
        violations = lint(source, self.profile, self.task.overload) if self.switches.lint else []
        if violations:
            return Event(EventKind.LINT_REFUSED, source=source, report=render(violations))
        return Event(EventKind.LINT_CLEAN, source=source)

    def _flaw(self) -> Flaw:
        """Return the reason why the answer has no usable file."""
        if not self.state.size:
            return Flaw.EMPTY
        if self.state.size > self.state.limits.answer:
            return Flaw.OVERSIZED
        return Flaw.CUT if self.state.cut else Flaw.NO_FILE

    def _test(self) -> Event:
        """Test the kernel, and return counts by outcome and the first failure."""
        verdicts = self.tester(self.state.source or "")
        counted = Counter(v.outcome for v in verdicts if v.rule not in (UNREACHED, LINT))
        counts = {str(outcome): n for outcome, n in sorted(counted.items())}
        failing = [v for v in verdicts if v.outcome is not Outcome.PASS]
        if failing:
            first = min(failing, key=lambda v: v.outcome is Outcome.SKIPPED)
            report = "\n\n".join(filter(None, (first.report or first.detail, _by_dtype(verdicts))))
            outcome = first.rule if first.rule in (UNREACHED, LINT) else str(first.outcome)
            return Event(EventKind.TEST_FAILED, outcome=outcome, report=report, counts=counts)
        if not verdicts:
            return Event(EventKind.FAILED, text="no case of this operator could be tested", counts=counts)
        return Event(EventKind.TEST_PASSED, counts=counts)

    def _feedback(self) -> Event:
        """Return the next user message, or an event that asks for a debugger's report or a summary first."""
        state = self.state
        if state.flaw:
            return Event(EventKind.ADVISED, text=prompts.flawed(state))
        if self.switches.debug and state.outcome in (Outcome.CRASH, Outcome.TIMEOUT):
            return Event(EventKind.REPORT_CRASH)
        if self.switches.summarize and state.outcome != LINT and len(state.report) > state.limits.report:
            return Event(EventKind.REPORT_LONG)
        return Event(EventKind.ADVISED, text=prompts.feedback(state, state.report))

    def _debug(self) -> Event:
        """Return feedback with the debugger's report."""
        report = self.debugger(self.state.source or "") if self.debugger else ""
        return Event(EventKind.DEBUGGED, text=prompts.feedback(self.state, report or self.state.report), report=report)

    def _summarize(self) -> Event:
        """Return feedback with a summary.

        If the report exceeds the summarizing model's context, the feedback has the report cut in its middle.
        """
        try:
            request = prompts.summary_request(self.state.report, SUMMARY_INPUT)
            answer = self._ask(self.summarizer, request, "summarize")
        except ContextOverflow:
            return Event(EventKind.ADVISED, text=prompts.feedback(self.state, self.state.report))
        except ProviderError as error:
            return Event(EventKind.FAILED, text=str(error))
        summary = prompts.cut_middle(answer.text, self.state.limits.report)
        return Event(
            EventKind.SUMMARIZED,
            text=prompts.feedback(self.state, summary or self.state.report),
            report=summary,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            reasoning=prompts.cut_middle(answer.reasoning, self.state.limits.answer),
        )


def _by_dtype(verdicts: Sequence[Verdict]) -> str:
    """Return a line with the outcomes for each floating-point dtype; '' if all dtypes have the same outcomes."""
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in (v for v in verdicts if v.case not in NO_CASE):
        tally[verdict.dtypes or "no floating dtype"][str(verdict.outcome)] += 1
    if len({frozenset(counts) for counts in tally.values()}) < 2:
        return ""
    return (
        f"By dtype: {'; '.join(f'{dtypes}: {prompts.count_text(counts)}' for dtypes, counts in sorted(tally.items()))}."
    )
