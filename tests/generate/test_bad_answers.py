"""A server on loopback that misbehaves in one way each, through the real client and the whole state machine.

Every case names the events that it leads to: the transition is defined, and the dialog ends well.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from generate.dialog import open_journal, refine_operator
from generate.journal import read_journal
from generate.llm import Options, Price, load_provider
from generate.llm.budget import Budget, Budgeted, charge_runs
from generate.machine import DialogLimits, EventKind, Stage
from generate.recording import to_recording
from generate.task import Task
from verify.outcome import Outcome, Verdict

GOOD = (Path(__file__).parents[2] / "generate" / "examples" / "exp.py").read_text()
TASK = Task("aten::exp", ("aten::exp(Tensor self) -> Tensor",), ("float32",), "x.py")
RIGHT = f"```python\n{GOOD}```"
WRONG = RIGHT.replace("tl.exp", "tl.log")
OTHER = RIGHT.replace("tl.exp", "tl.sin")
UNCLEAN = RIGHT.replace("exponential, self,", "exponential, torch.exp(self),")
TO_ANSWER = [EventKind.PROMPTED, EventKind.ANSWERED]
TO_END = [EventKind.ADVISED, EventKind.ANSWERED, EventKind.LINT_CLEAN, EventKind.TEST_PASSED]
FAILED_TEST = [EventKind.LINT_CLEAN, EventKind.TEST_FAILED]


class Run:
    """Dialogs about one operator; a kernel is right unless it calls tl.log or tl.sin."""

    def __init__(self, dialogs, endpoint):
        self.dialogs, self.endpoint = dialogs, endpoint
        self.tested = []

    def __call__(self, *replies, model=None, summarizer=None, limits=None, debugger=None, outcome=Outcome.WRONG):
        self.endpoint.replies += replies
        self.kinds = []

        def tester(source):
            self.tested.append(source)
            for name in ("log", "sin"):
                if f"tl.{name}(" in source:
                    return [
                        Verdict("c", outcome, "", f"report of {name}" * (1000 if outcome == "COMPILE_ERROR" else 1))
                    ]
            return [Verdict("c", Outcome.PASS)]

        self.journal = open_journal(self.dialogs, TASK, limits)
        try:
            return refine_operator(
                TASK,
                model or self.model(),
                tester,
                self.journal,
                lambda state, event: self.kinds.append(event.kind),
                debugger,
                summarizer,
            )
        finally:
            self.journal.close()

    def model(self, name="m"):
        return load_provider("openai", Options(model=name, backoff=0.001, retries=2))

    def said(self, call):
        """The last user message of a request."""
        return self.endpoint.requests[call]["messages"][-1]["content"]


@pytest.fixture
def run(tmp_path, endpoint):
    return Run(tmp_path / "dialogs", endpoint)


BLOCKS = f"{WRONG}\n\nor rather\n\n{RIGHT}"
UNUSABLE = {
    "empty": ("", "Your answer is empty."),
    "blank": (" \n\n", "Your answer is empty."),
    "prose only": ("I would use tl.exp.", "[answer-format] no ```python block"),
    "two code blocks": (BLOCKS, "[answer-format] 2 python blocks"),
    "not closed": (RIGHT[:-10], "[answer-format] the last ``` block is not closed"),
    "1 MB": (RIGHT + "x" * 1_000_000, f"has {len(RIGHT) + 1_000_000} characters, too many to be read"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_answer_without_a_file(run, name):
    answer, told = UNUSABLE[name]
    result = run(answer, RIGHT)
    assert result.passed
    assert run.kinds == [*TO_ANSWER, EventKind.UNUSABLE, *TO_END]
    assert told in run.said(1)
    assert "Nothing was tested. Answer with the whole kernel file in one ```python block" in run.said(1)
    assert run.tested == [GOOD]


def test_of_a_1_mb_answer_head_and_tail_are_kept(run):
    head, tail = "Here it is: " + "a" * 500_000, "b" * 500_000 + " That is all."
    assert run(head + tail, RIGHT).passed
    (kept,) = [m["content"] for m in run.endpoint.requests[1]["messages"] if m["role"] == "assistant"]
    assert kept.startswith("Here it is: aaa")
    assert "996025 characters left out" in kept
    assert kept.endswith("bbb That is all.")
    assert len(kept) < 5_000
    assert run.journal.path.stat().st_size < 100_000


@pytest.mark.parametrize("text", [RIGHT[:-10], "", "Let me think"])
def test_a_cut_answer(run, text):
    result = run(run.endpoint.streamed(text, finish="length"), RIGHT)
    assert result.passed
    assert run.kinds == [*TO_ANSWER, EventKind.UNUSABLE, *TO_END]
    assert ("was cut off at the limit of its tokens" if text else "is empty") in run.said(1)


def test_a_cut_answer_that_holds_its_file_is_taken(run):
    assert run(run.endpoint.streamed(f"{RIGHT}\nThis kern", finish="length")).passed
    assert run.kinds == [*TO_ANSWER, EventKind.LINT_CLEAN, EventKind.TEST_PASSED]


def test_an_empty_answer_is_sent_back_as_a_word(run):
    """Endpoints that refuse messages without content go on."""
    run("", RIGHT)
    assert [m["content"] for m in run.endpoint.requests[1]["messages"] if m["role"] == "assistant"] == ["(empty)"]


def test_a_repeated_file_is_told_so_with_its_failure_and_not_tested(run):
    result = run(WRONG, OTHER, f"Now it is right.\n{WRONG}", UNCLEAN, UNCLEAN, RIGHT)
    assert result.passed
    again = [EventKind.ADVISED, EventKind.ANSWERED, EventKind.REPEATED]
    refused = [EventKind.ADVISED, EventKind.ANSWERED, EventKind.LINT_REFUSED]
    failed = [*FAILED_TEST, EventKind.ADVISED, EventKind.ANSWERED, *FAILED_TEST]
    assert run.kinds == [*TO_ANSWER, *failed, *again, *refused, *again, *TO_END]
    assert run.said(3).startswith("This file is, to the letter, one that failed before; it was not tested again.")
    assert "report of log" in run.said(3)
    assert "torch.exp is not allowed" in run.said(5)
    assert len(run.tested) == 3


def test_a_model_that_repeats_itself_is_left(run):
    result = run(*[WRONG] * 4, WRONG, RIGHT, limits=DialogLimits(repeats=3))
    assert result.passed
    assert result.dialogs == 2
    assert run.kinds.count(EventKind.REPEATED) == 4, "also in the next dialog, which began with this file"
    assert len(run.tested) == 2
    assert "report of log" in run.endpoint.requests[4]["messages"][1]["content"]


def test_a_model_that_only_repeats_itself_runs_out_of_dialogs(run):
    result = run(*[WRONG] * 7, limits=DialogLimits(repeats=3, dialogs=2))
    assert (result.stage, result.llm_calls) == (Stage.OUT_OF_DIALOGS, 7)
    assert len(run.tested) == 1


OVERFLOWS = [
    (400, {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}),
    (400, {"message": "The decoder prompt (length 9) is longer than the maximum model length of 8.", "code": 400}),
    (400, {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}),
    (400, {"message": "the input length exceeds the context length"}),
]


@pytest.mark.parametrize("overflow", OVERFLOWS, ids=["openai", "vllm", "llama.cpp", "ollama"])
def test_context_overflow(run, overflow):
    result = run(WRONG, overflow, RIGHT)
    assert (result.passed, result.dialogs, result.llm_calls) == (True, 2, 2)
    assert run.kinds == [
        *TO_ANSWER,
        *FAILED_TEST,
        EventKind.ADVISED,
        EventKind.CONTEXT_FULL,
        EventKind.DIALOG_ENDED,
        *TO_ANSWER,
        EventKind.LINT_CLEAN,
        EventKind.TEST_PASSED,
    ]
    assert "tl.log" in run.said(2), "the new dialog starts from the latest kernel"


def test_context_overflow_at_once_ends(run):
    result = run(*OVERFLOWS[:3])
    assert (result.stage, result.llm_calls) == (Stage.OUT_OF_DIALOGS, 0)


ABORTS = {
    "wrong key": ([401], "HTTP 401: the key was refused; set OPENAI_API_KEY to a valid one"),
    "rate limit": ([429] * 3, "HTTP 429: too many requests or no quota; try again later"),
    "long rate limit": ([(429, {}, {"retry-after": "900"})], "the endpoint asks to wait for 900 s"),
    "server error": ([503] * 3, "HTTP 503: the request failed (status 503 on purpose); tried 3 times"),
    "lost in the middle": ([[None]] * 3, "the connection was lost"),
    "no completion": ([b"<html>"], "malformed answer"),
}


@pytest.mark.parametrize("name", ABORTS)
def test_an_endpoint_that_fails_aborts_and_the_same_command_goes_on(run, name):
    failures, cause = ABORTS[name]
    result = run(WRONG, *failures)
    assert result.stage is Stage.ABORTED
    assert cause in result.cause
    assert "\n" not in result.cause
    assert run.kinds[-1] is EventKind.FAILED
    assert "secret" not in run.journal.path.read_text()
    assert run(RIGHT).passed
    assert len(run.tested) == 2, "what was answered before is not asked or tested again"


def test_an_endpoint_that_is_down_aborts(run, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free.getsockname()[1]}/v1")
        result = run()
    assert result.stage is Stage.ABORTED
    assert "cannot connect" in result.cause


def test_passing_failures_cost_no_call(run):
    result = run(429, 503, RIGHT, limits=DialogLimits(calls=1))
    assert (result.passed, result.llm_calls) == (True, 1)


def test_a_model_for_each_role(run):
    result = run(WRONG, "the summary", RIGHT, summarizer=run.model("small"), outcome=Outcome.COMPILE_ERROR)
    assert result.passed
    assert [r["model"] for r in run.endpoint.requests] == ["m", "small", "m"]
    requests = [r for r in read_journal(run.journal.path) if "request" in r]
    assert [r["model"] for r in requests] == ["openai m", "openai small", "openai m"]


SUMMARIES = {
    "too long for it": (OVERFLOWS[0], EventKind.ADVISED, "characters left out", 2),
    "empty": ("", EventKind.SUMMARIZED, "characters left out", 3),
    "1 MB": ("word " * 200_000, EventKind.SUMMARIZED, "word word", 3),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_that_cannot_be_used(run, name):
    """The dialog goes on with what there is, cut to the limit."""
    reply, kind, told, calls = SUMMARIES[name]
    result = run(WRONG, reply, RIGHT, outcome=Outcome.COMPILE_ERROR)
    assert (result.passed, result.llm_calls) == (True, calls)
    assert kind in run.kinds
    assert told in run.said(2)
    assert len(run.said(2)) < 10_000


def test_the_debugger_is_given_the_kernel_and_its_report_goes_on(run):
    given = []

    def debugger(source):
        given.append(source)
        return "line 30 reads 4 bytes behind self"

    assert run(WRONG, RIGHT, debugger=debugger, outcome=Outcome.CRASH).passed
    assert given == [run.tested[0]]
    assert "line 30 reads 4 bytes behind self" in run.said(1)
    assert "report of log" not in run.said(1)
    assert EventKind.DEBUGGED in run.kinds


def test_a_debugger_that_finds_nothing_leaves_the_judges_report(run):
    assert run(WRONG, RIGHT, debugger=lambda source: "", outcome=Outcome.CRASH).passed
    assert "report of log" in run.said(1)


def test_reasoning_is_in_the_journal_and_not_in_the_conversation(run):
    thought = run.endpoint.delta(reasoning_content="perhaps erf")
    assert run([thought, *run.endpoint.streamed(WRONG)], RIGHT).passed
    answered = [r for r in read_journal(run.journal.path) if r.get("event") == EventKind.ANSWERED]
    assert answered[0]["reasoning"] == "perhaps erf"
    assert "perhaps erf" not in str(run.endpoint.requests)


def test_a_spent_budget_aborts_and_a_larger_one_goes_on(run):
    assert run(WRONG, model=Budgeted(run.model(), Budget(calls=1))).cause == (
        "budget of 1 calls is spent; raise it with budget.calls and run the same command again"
    )
    assert run.kinds[-1] is EventKind.FAILED
    assert run(RIGHT, model=Budgeted(run.model(), Budget(calls=2))).passed


def test_what_runs_have_used_is_charged_when_they_go_on(run):
    used = Budget()
    roles = {
        "model": Budgeted(run.model(), used, Price(1, 10)),
        "summarizer": Budgeted(run.model(), used, Price(2, 20)),
    }
    run(WRONG, "summary", 401, **roles, outcome=Outcome.COMPILE_ERROR)
    run(RIGHT, **roles)
    again = Budget()
    charge_runs(again, run.dialogs, Price(1, 10), Price(2, 20))
    assert (again.calls, again.tokens, again.money) == (used.calls, used.tokens, pytest.approx(used.money))
    assert again.calls == 3


def test_bad_answers_replay_as_they_were(run, tmp_path):
    cut = run.endpoint.streamed("Let me", finish="length")
    run("", "prose", BLOCKS, cut, "y" * 1_000_000, WRONG, WRONG, RIGHT)
    kinds = run.kinds
    to_recording(run.journal.path, tmp_path / "recordings" / "exp.jsonl")
    run.dialogs = tmp_path / "again"
    result = run(model=load_provider("replay", Options(recordings=tmp_path / "recordings")))
    assert result.passed
    assert run.kinds == kinds
