"""The state machine of one operator's refinement: states, events, the table of transitions and a pure `step`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from generate.llm import Message, estimate_tokens


class Stage(StrEnum):
    """The states. The first seven work; the others are exits, of a dialog (OUT_OF_CALLS, OUT_OF_CONTEXT) or of all."""

    PROMPT = "PROMPT"
    GENERATE = "GENERATE"
    LINT = "LINT"
    TEST = "TEST"
    FEEDBACK = "FEEDBACK"
    SUMMARIZE = "SUMMARIZE"
    DEBUG = "DEBUG"
    OUT_OF_CALLS = "OUT_OF_CALLS"
    OUT_OF_CONTEXT = "OUT_OF_CONTEXT"
    PASSED = "PASSED"
    OUT_OF_DIALOGS = "OUT_OF_DIALOGS"
    ABORTED = "ABORTED"


FINAL = frozenset({Stage.PASSED, Stage.OUT_OF_DIALOGS, Stage.ABORTED})


class Kind(StrEnum):
    """What can happen."""

    PROMPTED = "PROMPTED"  # a dialog was opened with `messages`
    ANSWERED = "ANSWERED"  # the model said `text`
    CONTEXT_FULL = "CONTEXT_FULL"  # the model refused the conversation as too long
    FAILED = "FAILED"  # model or tester could not work; `text` is the cause
    LINT_CLEAN = "LINT_CLEAN"  # `source` was taken from the answer
    LINT_REFUSED = "LINT_REFUSED"  # `report` says why; `source` if a file could be taken at all
    TEST_PASSED = "TEST_PASSED"
    TEST_FAILED = "TEST_FAILED"  # the first failing case: `outcome`, `report`; `counts` of all by outcome
    ADVISED = "ADVISED"  # `text` is the next user message
    REPORT_LONG = "REPORT_LONG"  # the report has to be summarised first
    REPORT_CRASH = "REPORT_CRASH"  # the report is the debugger's work
    SUMMARIZED = "SUMMARIZED"  # `text` is the next user message, `report` the summary in it
    DEBUGGED = "DEBUGGED"  # `text` is the next user message
    DIALOG_ENDED = "DIALOG_ENDED"


TABLE: dict[tuple[Stage, Kind], Stage] = {
    (Stage.PROMPT, Kind.PROMPTED): Stage.GENERATE,
    (Stage.GENERATE, Kind.ANSWERED): Stage.LINT,
    (Stage.GENERATE, Kind.CONTEXT_FULL): Stage.OUT_OF_CONTEXT,
    (Stage.GENERATE, Kind.FAILED): Stage.ABORTED,
    (Stage.LINT, Kind.LINT_CLEAN): Stage.TEST,
    (Stage.LINT, Kind.LINT_REFUSED): Stage.FEEDBACK,
    (Stage.TEST, Kind.TEST_PASSED): Stage.PASSED,
    (Stage.TEST, Kind.TEST_FAILED): Stage.FEEDBACK,
    (Stage.TEST, Kind.FAILED): Stage.ABORTED,
    (Stage.FEEDBACK, Kind.ADVISED): Stage.GENERATE,
    (Stage.FEEDBACK, Kind.REPORT_LONG): Stage.SUMMARIZE,
    (Stage.FEEDBACK, Kind.REPORT_CRASH): Stage.DEBUG,
    (Stage.SUMMARIZE, Kind.SUMMARIZED): Stage.GENERATE,
    (Stage.SUMMARIZE, Kind.FAILED): Stage.ABORTED,
    (Stage.DEBUG, Kind.DEBUGGED): Stage.GENERATE,
    (Stage.OUT_OF_CALLS, Kind.DIALOG_ENDED): Stage.PROMPT,
    (Stage.OUT_OF_CONTEXT, Kind.DIALOG_ENDED): Stage.PROMPT,
}


@dataclass(frozen=True)
class Limits:
    """Budgets. The CLI shows and overrides these very defaults.

    dialogs: of one operator. calls: LLM answers in a dialog. context: tokens a conversation may have.
    report: characters of a report beyond which it is summarised, or cut in its middle.
    """

    dialogs: int = 3
    calls: int = 15
    context: int = 131_072
    temperature: float = 1.0
    report: int = 8_000


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

    kind: Kind
    text: str = ""
    messages: tuple[Message, ...] = ()
    source: str | None = None
    outcome: str = ""
    report: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class State:
    """All that the next step depends on.

    dialog: 1-based. calls: answers in this dialog. llm_calls, tokens: of all dialogs, summaries included.
    context: tokens in this dialog's conversation. source: the latest kernel. outcome, report, counts: of the latest
    failure ('LINT' or an Outcome).
    """

    limits: Limits = field(default_factory=Limits)
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
    messages = (*state.messages, Message("assistant", event.text))
    used = event.prompt_tokens + event.completion_tokens or estimate_tokens(messages)
    counted = replace(state, calls=state.calls + 1, llm_calls=state.llm_calls + 1, tokens=state.tokens + used)
    return replace(counted, messages=messages, context=used)


def _advised(state: State, event: Event) -> State:
    message = Message("user", event.text)
    return replace(state, messages=(*state.messages, message), context=state.context + estimate_tokens([message]))


def _summarized(state: State, event: Event) -> State:
    used = event.prompt_tokens + event.completion_tokens or estimate_tokens([Message("user", state.report)])
    counted = replace(state, llm_calls=state.llm_calls + 1, tokens=state.tokens + used, report=event.report)
    return _advised(counted, event)


def _took_source(state: State, event: Event) -> State:
    return replace(state, source=event.source)


def _refused(state: State, event: Event) -> State:
    source = state.source if event.source is None else event.source
    return replace(state, source=source, outcome="LINT", report=event.report, counts={})


def _test_failed(state: State, event: Event) -> State:
    return replace(state, outcome=event.outcome, report=event.report, counts=event.counts)


def _failed(state: State, event: Event) -> State:
    return replace(state, cause=event.text)


def _dialog_ended(state: State, event: Event) -> State:
    return replace(state, dialog=state.dialog + 1, calls=0, context=0, messages=())


_UPDATES: dict[Kind, Callable[[State, Event], State]] = {
    Kind.PROMPTED: _prompted,
    Kind.ANSWERED: _answered,
    Kind.FAILED: _failed,
    Kind.LINT_CLEAN: _took_source,
    Kind.LINT_REFUSED: _refused,
    Kind.TEST_FAILED: _test_failed,
    Kind.ADVISED: _advised,
    Kind.SUMMARIZED: _summarized,
    Kind.DEBUGGED: _advised,
    Kind.DIALOG_ENDED: _dialog_ended,
}
