"""The state machine of one operator's refinement: states, events, the table of transitions and a pure `step`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from generate.llm import Message, estimate_tokens
from verify.outcome import LINT


class Stage(StrEnum):
    """The states. The first seven work; three are exits of a dialog (OUT_OF_CALLS, OUT_OF_CONTEXT, STUCK: the model
    repeats itself), the others of all."""

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
    """What can happen."""

    PROMPTED = "PROMPTED"  # a dialog was opened with `messages`
    ANSWERED = "ANSWERED"  # the model said `text`, after `reasoning`; `cut`, `size`: see Answer
    CONTEXT_FULL = "CONTEXT_FULL"  # the model refused the conversation as too long
    FAILED = "FAILED"  # model or tester could not work; `text` is the cause
    UNUSABLE = "UNUSABLE"  # no file could be taken from the answer: `outcome` is a Flaw, `report` the details
    REPEATED = "REPEATED"  # the answer's `source` was given before in this dialog and failed
    LINT_CLEAN = "LINT_CLEAN"  # `source` was taken from the answer
    LINT_REFUSED = "LINT_REFUSED"  # `report` says what is wrong with `source`
    TEST_PASSED = "TEST_PASSED"
    TEST_FAILED = "TEST_FAILED"  # the first failing case: `outcome`, `report`; `counts` of all by outcome
    ADVISED = "ADVISED"  # `text` is the next user message
    REPORT_LONG = "REPORT_LONG"  # the report has to be summarised first
    REPORT_CRASH = "REPORT_CRASH"  # the report is the debugger's work
    SUMMARIZED = "SUMMARIZED"  # `text` is the next user message, `report` the summary in it
    DEBUGGED = "DEBUGGED"  # `text` is the next user message, `report` the debugger's report in it
    DIALOG_ENDED = "DIALOG_ENDED"


class Flaw(StrEnum):
    """What can be wrong with an answer before its file is looked at."""

    EMPTY = "EMPTY"
    CUT = "CUT"  # it ended at the model's limit of tokens, without a whole file
    OVERSIZED = "OVERSIZED"
    NO_FILE = "NO_FILE"  # prose only, several blocks, a block that is not closed
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
    (Stage.SUMMARIZE, EventKind.ADVISED): Stage.GENERATE,  # too long for the summarising model: the report is cut
    (Stage.SUMMARIZE, EventKind.FAILED): Stage.ABORTED,
    (Stage.DEBUG, EventKind.DEBUGGED): Stage.GENERATE,
    (Stage.OUT_OF_CALLS, EventKind.DIALOG_ENDED): Stage.PROMPT,
    (Stage.OUT_OF_CONTEXT, EventKind.DIALOG_ENDED): Stage.PROMPT,
    (Stage.STUCK, EventKind.DIALOG_ENDED): Stage.PROMPT,
}


@dataclass(frozen=True)
class DialogLimits:
    """Budgets. The CLI shows and overrides these very defaults.

    dialogs: of one operator. calls: LLM answers in a dialog. context: tokens a conversation may have.
    report: characters of a report beyond which it is summarised, or cut in its middle. answer: characters of an answer
    beyond which it is refused. repeats: answers in a dialog that repeat a file of it before the dialog ends.
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
    """States that can be left out. Without lint only the form of an answer is checked; without summarize long reports
    are cut; without debug a crash is reported like any other failure."""

    lint: bool = True
    summarize: bool = True
    debug: bool = True


@dataclass(frozen=True)
class Event:
    """Something that happened; `Kind` says which fields it uses."""

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
    """A file of this dialog that failed, and how: see State."""

    source: str
    outcome: str
    report: str
    counts: dict[str, int]


@dataclass(frozen=True)
class State:
    """All that the next step depends on.

    dialog: 1-based. calls: answers in this dialog. llm_calls, tokens: of all dialogs, summaries included.
    context: tokens in this dialog's conversation. source: the latest kernel. outcome, report, counts: of its failure
    ('LINT' or an Outcome). cut, size: of the latest answer. flaw, refusal: why no new kernel was in it, if so. tried:
    this dialog's files, the latest last. repeats: how many answers of this dialog were one of them again.
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
    """An event that the state does not know; a defect of the driver or of a journal."""


def step(state: State, event: Event) -> State:
    """The state after `event`. Raises IllegalTransition for a pair that is not in TABLE."""
    target = TABLE.get((state.stage, event.kind))
    if target is None:
        raise IllegalTransition(f"{event.kind} in state {state.stage}")
    after = _UPDATES.get(event.kind, _nothing)(state, event)
    return replace(after, stage=_within_limits(target, after))


def _within_limits(target: Stage, state: State) -> Stage:
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
    # Reasoning is counted as completion, but is no part of the conversation.
    context = (
        event.prompt_tokens + min(event.completion_tokens, estimate_tokens([answer])) if event.prompt_tokens else used
    )
    counted = replace(state, calls=state.calls + 1, llm_calls=state.llm_calls + 1, tokens=state.tokens + used)
    size = event.size or len(event.text.strip())
    return replace(counted, messages=messages, context=context, cut=event.cut, size=size, flaw="", refusal="")


def _advised(state: State, event: Event) -> State:
    message = Message("user", event.text)
    return replace(state, messages=(*state.messages, message), context=state.context + estimate_tokens([message]))


def _summarized(state: State, event: Event) -> State:
    used = event.prompt_tokens + event.completion_tokens or estimate_tokens([Message("user", state.report)])
    counted = replace(state, llm_calls=state.llm_calls + 1, tokens=state.tokens + used)
    return _advised(_reported(counted, event), event)


def _debugged(state: State, event: Event) -> State:
    return _advised(_reported(state, event), event)


def _reported(state: State, event: Event) -> State:
    """The event's report, if it has one, in place of the latest failure's."""
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
    if event.source is None:  # in journals of version 1, which know no UNUSABLE
        return replace(state, outcome=LINT, report=event.report, counts={})
    return _tried(state, Tried(event.source, LINT, event.report, {}))


def _test_failed(state: State, event: Event) -> State:
    return _tried(state, Tried(state.source or "", event.outcome, event.report, event.counts))


def _tried(state: State, file: Tried) -> State:
    after = replace(state, source=file.source, outcome=file.outcome, report=file.report, counts=file.counts)
    return replace(after, tried=(*(t for t in state.tried if t.source != file.source), file))


def _failed(state: State, event: Event) -> State:
    return replace(state, cause=event.text)


def _dialog_ended(state: State, event: Event) -> State:
    """A new dialog knows only the latest kernel."""
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
