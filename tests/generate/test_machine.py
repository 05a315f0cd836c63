from __future__ import annotations

from dataclasses import replace

import pytest

from generate.llm import Message
from generate.machine import (
    FINAL,
    TABLE,
    DialogLimits,
    Event,
    EventKind,
    Flaw,
    IllegalTransition,
    Stage,
    State,
    Tried,
    step,
)

PAIRS = [(stage, kind) for stage in Stage for kind in EventKind]


@pytest.mark.parametrize(("stage", "kind"), PAIRS, ids=lambda v: str(v))
def test_every_pair_is_in_the_table_or_refused(stage, kind):
    state = State(stage=stage, tried=(Tried("s", "WRONG", "r", {}),))
    if (stage, kind) in TABLE:
        assert step(state, Event(kind, source="s")).stage is TABLE[stage, kind]
    else:
        with pytest.raises(IllegalTransition, match=f"{kind} in state {stage}"):
            step(state, Event(kind))


def test_final_states_have_no_way_out_and_all_others_do():
    assert {stage for stage, _ in TABLE} == set(Stage) - FINAL


def test_every_state_can_be_reached():
    reached = {Stage.PROMPT, Stage.OUT_OF_CALLS, Stage.STUCK, Stage.OUT_OF_DIALOGS}  # all but the first by limits
    assert reached | set(TABLE.values()) == set(Stage)


def test_step_is_pure():
    state = State()
    step(state, Event(EventKind.PROMPTED, messages=(Message("user", "x"),)))
    assert state == State()


def run(state, *events):
    for event in events:
        state = step(state, event)
    return state


PROMPTED = Event(EventKind.PROMPTED, messages=(Message("system", "rules"), Message("user", "operator")))
ANSWERED = Event(EventKind.ANSWERED, text="answer", prompt_tokens=100, completion_tokens=20)
REFUSED = Event(EventKind.LINT_REFUSED, report="[name] x", source="bad")
ADVISED = Event(EventKind.ADVISED, text="mend it")


def test_a_conversation_grows_and_is_counted():
    state = run(State(), PROMPTED, ANSWERED, REFUSED, ADVISED, ANSWERED)
    assert [m.role for m in state.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert (state.calls, state.llm_calls, state.tokens, state.context) == (2, 2, 240, 110)
    assert (state.source, state.outcome, state.report) == ("bad", "LINT", "[name] x")


def test_the_last_call_of_a_dialog_gets_no_feedback():
    limits = DialogLimits(calls=2, dialogs=2)
    state = run(State(limits), PROMPTED, ANSWERED, REFUSED, ADVISED, ANSWERED, REFUSED)
    assert state.stage is Stage.OUT_OF_CALLS
    state = step(state, Event(EventKind.DIALOG_ENDED))
    assert (state.stage, state.dialog, state.calls, state.messages) == (Stage.PROMPT, 2, 0, ())
    assert (state.source, state.report) == ("bad", "[name] x"), "the new dialog starts from the latest kernel"
    state = run(state, PROMPTED, ANSWERED, REFUSED, ADVISED, ANSWERED, REFUSED, Event(EventKind.DIALOG_ENDED))
    assert state.stage is Stage.OUT_OF_DIALOGS


def test_the_last_call_may_still_pass():
    state = run(State(DialogLimits(calls=1)), PROMPTED, ANSWERED, Event(EventKind.LINT_CLEAN, source="s"))
    assert step(state, Event(EventKind.TEST_PASSED)).stage is Stage.PASSED


@pytest.mark.parametrize("text", ["x" * 3000, ""])
def test_a_full_context_ends_the_dialog(text):
    used = 900 if text else 1000
    answered = replace(ANSWERED, prompt_tokens=used, completion_tokens=0)
    state = run(State(DialogLimits(context=1000)), PROMPTED, answered, REFUSED, Event(EventKind.ADVISED, text=text))
    assert state.stage is Stage.OUT_OF_CONTEXT
    assert step(state, Event(EventKind.DIALOG_ENDED)).stage is Stage.PROMPT


def test_tokens_are_estimated_where_the_provider_counts_none():
    state = run(State(), PROMPTED, Event(EventKind.ANSWERED, text="x" * 300))
    assert 100 < state.context < 200


def test_reasoning_takes_no_room_in_the_conversation():
    state = run(State(), PROMPTED, replace(ANSWERED, completion_tokens=50_000, reasoning="x" * 10_000))
    assert (state.tokens, state.context) == (50_100, 110)


@pytest.mark.parametrize("flaw", [f for f in Flaw if f is not Flaw.REPEATED])
def test_an_answer_without_a_file_keeps_the_latest_kernel_and_its_failure(flaw):
    state = run(State(), PROMPTED, ANSWERED, CLEAN, FAILED, ADVISED, ANSWERED)
    state = step(state, Event(EventKind.UNUSABLE, outcome=flaw, report="[answer-format] none"))
    assert (state.stage, state.source, state.outcome, state.report) == (Stage.FEEDBACK, "s", "WRONG", "r")
    assert (state.flaw, state.refusal) == (flaw, "[answer-format] none")
    assert run(state, ADVISED, ANSWERED).flaw == ""


def test_version_1_knows_no_unusable_answers():
    state = run(State(source="old"), PROMPTED, ANSWERED, Event(EventKind.LINT_REFUSED, report="[answer-format] none"))
    assert (state.source, state.outcome, state.tried) == ("old", "LINT", ())


CLEAN = Event(EventKind.LINT_CLEAN, source="s")
FAILED = Event(EventKind.TEST_FAILED, outcome="WRONG", report="r", counts={"WRONG": 1})
REPEATED = Event(EventKind.REPEATED, source="bad")


def test_a_repeated_file_takes_the_place_of_the_latest_with_its_own_failure():
    state = run(State(), PROMPTED, ANSWERED, REFUSED, ADVISED, ANSWERED, CLEAN, FAILED, ADVISED, ANSWERED, REPEATED)
    assert (state.stage, state.flaw, state.repeats) == (Stage.FEEDBACK, Flaw.REPEATED, 1)
    assert (state.source, state.outcome, state.report, state.counts) == ("bad", "LINT", "[name] x", {})
    assert [t.source for t in state.tried] == ["s", "bad"]
    with pytest.raises(IllegalTransition, match="of a file that was not tried"):
        run(state, ADVISED, ANSWERED, replace(REPEATED, source="new"))


def test_repeats_end_a_dialog_and_the_next_knows_only_the_latest_file():
    again = (ADVISED, ANSWERED, REPEATED)
    state = run(
        State(DialogLimits(repeats=2)), PROMPTED, ANSWERED, CLEAN, FAILED, ADVISED, ANSWERED, REFUSED, *again, *again
    )
    assert state.stage is Stage.STUCK
    state = step(state, Event(EventKind.DIALOG_ENDED))
    assert (state.stage, state.dialog, state.repeats) == (Stage.PROMPT, 2, 0)
    assert [t.source for t in state.tried] == ["bad"]


def test_a_summary_stands_for_the_report_wherever_it_is_told_again():
    summarized = Event(EventKind.SUMMARIZED, text="short", report="summary")
    debugged = Event(EventKind.DEBUGGED, text="there", report="line 3")
    state = run(State(), PROMPTED, ANSWERED, CLEAN, FAILED, Event(EventKind.REPORT_LONG), summarized)
    assert [t.report for t in state.tried] == ["summary"]
    state = run(state, ANSWERED, CLEAN, FAILED, Event(EventKind.REPORT_CRASH), debugged)
    assert (state.report, [t.report for t in state.tried]) == ("line 3", ["line 3"])
    state = run(state, ANSWERED, CLEAN, FAILED, Event(EventKind.REPORT_CRASH), replace(debugged, report=""))
    assert state.report == "r", "without a debugger's report the judge's stands"


def test_a_report_that_is_too_long_for_a_summary_is_cut():
    state = run(State(), PROMPTED, ANSWERED, CLEAN, FAILED, Event(EventKind.REPORT_LONG), ADVISED)
    assert (state.stage, state.llm_calls) == (Stage.GENERATE, 1)


def test_a_summary_counts_as_llm_call_but_not_against_the_dialog():
    failed = Event(EventKind.TEST_FAILED, outcome="COMPILE_ERROR", report="long", counts={"COMPILE_ERROR": 1})
    summarized = Event(EventKind.SUMMARIZED, text="short", report="summary", prompt_tokens=50, completion_tokens=5)
    state = run(
        State(),
        PROMPTED,
        ANSWERED,
        Event(EventKind.LINT_CLEAN, source="s"),
        failed,
        Event(EventKind.REPORT_LONG),
        summarized,
    )
    assert (state.stage, state.calls, state.llm_calls, state.tokens) == (Stage.GENERATE, 1, 2, 175)
    assert (state.report, state.messages[-1]) == ("summary", Message("user", "short"))
