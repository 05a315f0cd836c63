"""Define the state machine for refining one operator: states, events, the transition table and a pure `step`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from generate.llm import Message, estimate_tokens
from verify.outcome import LINT


class Stage(StrEnum):
    """The states.

    The first seven do work. OUT_OF_CALLS, OUT_OF_CONTEXT and STUCK (the model repeats itself) end a dialog. The
    others are final.
    """

    PROMPT = "PROMPT"
    GENERATE = "GENERATE"
    LINT = "LINT"
    TEST = "TEST"
    FEEDBACK = "FEEDBACK"
    SUMMARIZE = "SUMMARIZE"
    DEBUG = "DEBUG"
    OUT_OF_CALLS = "OUT_OF_CALLS"
    OUT_OF_CONTEXT = "OUT_OF_CONTEXT"
    STUCK = "STUCK"
    PASSED = "PASSED"
    OUT_OF_DIALOGS = "OUT_OF_DIALOGS"
    ABORTED = "ABORTED"


FINAL = frozenset({Stage.PASSED, Stage.OUT_OF_DIALOGS, Stage.ABORTED})


class EventKind(StrEnum):
    """The kinds of events."""

    PROMPTED = "PROMPTED"  # a dialog was opened with `messages`
    ANSWERED = "ANSWERED"  # the model answered `text`, after `reasoning`; `cut`, `size`: see Answer
    CONTEXT_FULL = "CONTEXT_FULL"  # the model refused the conversation as too long
    FAILED = "FAILED"  # the model or the tester could not work; `text` is the cause
    UNUSABLE = "UNUSABLE"  # the answer has no usable file: `outcome` is a Flaw, `report` the details
    REPEATED = "REPEATED"  # the answer's `source` already failed in this dialog
    LINT_CLEAN = "LINT_CLEAN"  # `source` was extracted from the answer
    LINT_REFUSED = "LINT_REFUSED"  # `report` lists the violations in `source`
    TEST_PASSED = "TEST_PASSED"
    TEST_FAILED = "TEST_FAILED"  # `outcome` and `report` for the first failing case; `counts` by outcome for all
    ADVISED = "ADVISED"  # `text` is the next user message
    REPORT_LONG = "REPORT_LONG"  # the report has to be summarized first
    REPORT_CRASH = "REPORT_CRASH"  # the debugger has to write the report
    SUMMARIZED = "SUMMARIZED"  # `text` is the next user message, `report` the summary in it
    DEBUGGED = "DEBUGGED"  # `text` is the next user message, `report` the debugger's report in it
    DIALOG_ENDED = "DIALOG_ENDED"


class Flaw(StrEnum):
    """The reasons why an answer has no new kernel file."""

    EMPTY = "EMPTY"
    CUT = "CUT"  # truncated at the model's token limit, without a complete file
    OVERSIZED = "OVERSIZED"
    NO_FILE = "NO_FILE"  # only prose, several blocks, or a block that is not closed
    REPEATED = "REPEATED"


TABLE: dict[tuple[Stage, EventKind], Stage] = {
    (Stage.PROMPT, EventKind.PROMPTED): Stage.GENERATE,
    (Stage.GENERATE, EventKind.ANSWERED): Stage.LINT,
    (Stage.GENERATE, EventKind.CONTEXT_FULL): Stage.OUT_OF_CONTEXT,
    (Stage.GENERATE, EventKind.FAILED): Stage.ABORTED,
    (Stage.LINT, EventKind.UNUSABLE): Stage.FEEDBACK,
    (Stage.LINT, EventKind.REPEATED): Stage.FEEDBACK,
    (Stage.LINT, EventKind.LINT_CLEAN): Stage.TEST,
    (Stage.LINT, EventKind.LINT_REFUSED): Stage.FEEDBACK,
    (Stage.TEST, EventKind.TEST_PASSED): Stage.PASSED,
    (Stage.TEST, EventKind.TEST_FAILED): Stage.FEEDBACK,
    (Stage.TEST, EventKind.FAILED): Stage.ABORTED,
    (Stage.FEEDBACK, EventKind.ADVISED): Stage.GENERATE,
    (Stage.FEEDBACK, EventKind.REPORT_LONG): Stage.SUMMARIZE,
    (Stage.FEEDBACK, EventKind.REPORT_CRASH): Stage.DEBUG,
    (Stage.SUMMARIZE, EventKind.SUMMARIZED): Stage.GENERATE,
    (Stage.SUMMARIZE, EventKind.ADVISED): Stage.GENERATE,  # too long for the summarizing model, so the report is cut
    (Stage.SUMMARIZE, EventKind.FAILED): Stage.ABORTED,
    (Stage.DEBUG, EventKind.DEBUGGED): Stage.GENERATE,
    (Stage.OUT_OF_CALLS, EventKind.DIALOG_ENDED): Stage.PROMPT,
    (Stage.OUT_OF_CONTEXT, EventKind.DIALOG_ENDED): Stage.PROMPT,
    (Stage.STUCK, EventKind.DIALOG_ENDED): Stage.PROMPT,
}


@dataclass(frozen=True)
class DialogLimits:
    """Limits for an operator's dialogs. The CLI shows and overrides these defaults.

    Attributes:
        dialogs: Dialogs per operator.
        calls: LLM answers per dialog.
        context: Tokens per conversation.
        temperature: Sampling temperature.
        report: Characters; a longer report is summarized, or cut in its middle.
        answer: Characters; a longer answer is refused.
        repeats: Answers per dialog that repeat one of its files before the dialog ends.
    """

    dialogs: int = 3
    calls: int = 15
    context: int = 131_072
    temperature: float = 1.0
    report: int = 8_000
    answer: int = 200_000
    repeats: int = 3


@dataclass(frozen=True)
class Switches:
    """The optional states.

    Attributes:
        lint: If False, only the form of an answer is checked.
        summarize: If False, long reports are cut.
        debug: If False, a crash is reported like any other failure.
    """

    lint: bool = True
    summarize: bool = True
    debug: bool = True


@dataclass(frozen=True)
class Event:
    """Something that happened; `EventKind` documents the fields that each kind uses."""

    kind: EventKind
    text: str = ""
    messages: tuple[Message, ...] = ()
    source: str | None = None
    outcome: str = ""
    report: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning: str = ""
    cut: bool = False
    size: int = 0


@dataclass(frozen=True)
class Tried:
    """A file that failed in this dialog, and its failure; the fields are as in State."""

    source: str
    outcome: str
    report: str
    counts: dict[str, int]


@dataclass(frozen=True)
class State:
    """All data that the next step depends on.

    Attributes:
        limits: Limits.
        stage: Current stage.
        dialog: Number of the dialog, from 1.
        calls: Answers in this dialog.
        llm_calls: Answers in all dialogs, including summaries.
        tokens: Tokens in all dialogs, including summaries.
        context: Tokens in this dialog's conversation.
        messages: This dialog's conversation.
        source: Latest kernel.
        outcome: Its failure: 'LINT' or an Outcome.
        report: Report on its failure.
        counts: Case counts by outcome.
        cause: Cause of an abort.
        cut: True if the latest answer was truncated.
        size: Characters in the latest answer.
        flaw: Flaw that left the latest answer without a new kernel; '' if it has one.
        refusal: Details on the flaw.
        tried: This dialog's files, the latest last.
        repeats: Answers in this dialog that repeat one of its files.
    """

    limits: DialogLimits = field(default_factory=DialogLimits)
    stage: Stage = Stage.PROMPT
    dialog: int = 1
    calls: int = 0
    llm_calls: int = 0
    tokens: int = 0
    context: int = 0
    messages: tuple[Message, ...] = ()
    source: str | None = None
    outcome: str = ""
    report: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    cause: str = ""
    cut: bool = False
    size: int = 0
    flaw: str = ""
    refusal: str = ""
    tried: tuple[Tried, ...] = ()
    repeats: int = 0


class IllegalTransition(Exception):
    """An event that is not allowed in the state: a bug in the driver, or a damaged journal."""


def step(state: State, event: Event) -> State:
    """Return the state after `event`.

    Raises:
        IllegalTransition: If TABLE has no entry for the stage and the event.
    """
    target = TABLE.get((state.stage, event.kind))
    if target is None:
        raise IllegalTransition(f"{event.kind} in state {state.stage}")
    after = _UPDATES.get(event.kind, _nothing)(state, event)
    return replace(after, stage=_within_limits(target, after))


def _within_limits(target: Stage, state: State) -> Stage:
    """Return the target stage, or the exit whose limit is reached."""
    limits = state.limits
    if target is Stage.FEEDBACK and state.calls >= limits.calls:
        return Stage.OUT_OF_CALLS
    if target is Stage.FEEDBACK and state.repeats >= limits.repeats:
        return Stage.STUCK
    if target is Stage.GENERATE and state.context >= limits.context:
        return Stage.OUT_OF_CONTEXT
    if target is Stage.PROMPT and state.dialog > limits.dialogs:
        return Stage.OUT_OF_DIALOGS
    return target


def _nothing(state: State, event: Event) -> State:
    return state


def _prompted(state: State, event: Event) -> State:
    return replace(state, messages=event.messages, context=estimate_tokens(event.messages))


def _answered(state: State, event: Event) -> State:
    answer = Message("assistant", event.text)
    messages = (*state.messages, answer)
    used = event.prompt_tokens + event.completion_tokens or estimate_tokens(messages)
    # Reasoning counts as completion tokens, but does not stay in the conversation.
    context = (
        event.prompt_tokens + min(event.completion_tokens, estimate_tokens([answer])) if event.prompt_tokens else used
    )
    charged = replace(state, calls=state.calls + 1, llm_calls=state.llm_calls + 1, tokens=state.tokens + used)
    size = event.size or len(event.text.strip())
    return replace(charged, messages=messages, context=context, cut=event.cut, size=size, flaw="", refusal="")


def _advised(state: State, event: Event) -> State:
    message = Message("user", event.text)
    return replace(state, messages=(*state.messages, message), context=state.context + estimate_tokens([message]))


def _summarized(state: State, event: Event) -> State:
    used = event.prompt_tokens + event.completion_tokens or estimate_tokens([Message("user", state.report)])
    charged = replace(state, llm_calls=state.llm_calls + 1, tokens=state.tokens + used)
    return _advised(_reported(charged, event), event)


def _debugged(state: State, event: Event) -> State:
    return _advised(_reported(state, event), event)


def _reported(state: State, event: Event) -> State:
    """Replace the latest failure's report with the event's report, if it has one."""
    if not event.report:
        return state
    tried = tuple(replace(t, report=event.report) if t.source == state.source else t for t in state.tried)
    return replace(state, report=event.report, tried=tried)


def _unusable(state: State, event: Event) -> State:
    return replace(state, flaw=event.outcome, refusal=event.report)


def _repeated(state: State, event: Event) -> State:
    before = [t for t in state.tried if t.source == event.source]
    if not before:
        raise IllegalTransition(f"{event.kind} of a file that was not tried")
    return replace(_tried(state, before[0]), flaw=Flaw.REPEATED, repeats=state.repeats + 1)


def _took_source(state: State, event: Event) -> State:
    return replace(state, source=event.source)


def _refused(state: State, event: Event) -> State:
    if event.source is None:  # journals of version 1 have no UNUSABLE event
        return replace(state, outcome=LINT, report=event.report, counts={})
    return _tried(state, Tried(event.source, LINT, event.report, {}))


def _test_failed(state: State, event: Event) -> State:
    return _tried(state, Tried(state.source or "", event.outcome, event.report, event.counts))


def _tried(state: State, file: Tried) -> State:
    """Make `file` the latest failure, and move it to the end of `tried`."""
    after = replace(state, source=file.source, outcome=file.outcome, report=file.report, counts=file.counts)
    return replace(after, tried=(*(t for t in state.tried if t.source != file.source), file))


def _failed(state: State, event: Event) -> State:
    return replace(state, cause=event.text)


def _dialog_ended(state: State, event: Event) -> State:
    """Start a new dialog, which keeps only the latest kernel."""
    tried = tuple(t for t in state.tried if t.source == state.source)
    return replace(state, dialog=state.dialog + 1, calls=0, context=0, messages=(), tried=tried, repeats=0)


_UPDATES: dict[EventKind, Callable[[State, Event], State]] = {
    EventKind.PROMPTED: _prompted,
    EventKind.ANSWERED: _answered,
    EventKind.FAILED: _failed,
    EventKind.UNUSABLE: _unusable,
    EventKind.REPEATED: _repeated,
    EventKind.LINT_CLEAN: _took_source,
    EventKind.LINT_REFUSED: _refused,
    EventKind.TEST_FAILED: _test_failed,
    EventKind.ADVISED: _advised,
    EventKind.SUMMARIZED: _summarized,
    EventKind.DEBUGGED: _debugged,
    EventKind.DIALOG_ENDED: _dialog_ended,
}
