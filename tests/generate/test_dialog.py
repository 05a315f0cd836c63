"""The driver: whole dialogs over HTTP, with testers that judge as told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from generate.dialog import _by_dtype, open_journal, refine_operator
from generate.journal import event_of, read_journal
from generate.llm import Options, load_provider
from generate.machine import DialogLimits, EventKind, Stage, Switches
from generate.task import Task
from verify.outcome import ACCEPTANCE, FILE, LINT, UNREACHED, Outcome, Verdict

GOOD = (Path(__file__).parents[2] / "generate" / "examples" / "exp.py").read_text()
TASK = Task(
    overload="aten::exp",
    schemas=("aten::exp(Tensor self) -> Tensor",),
    dtypes=("float32",),
    path="generate/kernels/pointwise/exp.py",
    command="enable refine --op aten::exp --llm manual",
)
FENCED = f"```python\n{GOOD}```"
UNCLEAN = FENCED.replace("exponential, self,", "exponential, torch.exp(self),")
LATER = FENCED.replace("exponential", "later_exponential")


def verdicts(*outcomes, report="the report"):
    return [Verdict(f"case {i}", o, "detail", "" if o is Outcome.PASS else report) for i, o in enumerate(outcomes)]


PASSES = verdicts(Outcome.PASS, Outcome.PASS)
FAILS = verdicts(Outcome.PASS, Outcome.WRONG, Outcome.CRASH)


class Run:
    """One task on a workspace, with an endpoint and scripted verdicts."""

    def __init__(self, dialogs, endpoint):
        self.dialogs, self.endpoint = dialogs, endpoint
        self.tested, self.kinds = [], []

    def __call__(self, replies, results, task=TASK, limits=None, switches=None, restart=False):
        self.endpoint.replies += replies
        results = iter(results)

        def tester(source):
            self.tested.append(source)
            result = next(results)
            if isinstance(result, BaseException):
                raise result
            return result

        model = load_provider("openai", Options(model="m", backoff=0.001))
        self.journal = open_journal(self.dialogs, task, limits, switches, restart)
        try:
            return refine_operator(task, model, tester, self.journal, lambda s, e: self.kinds.append(e.kind))
        finally:
            self.journal.close()

    def said(self, call):
        """The last user message of a request."""
        return self.endpoint.requests[call]["messages"][-1]["content"]


@pytest.fixture
def run(tmp_path, endpoint):
    return Run(tmp_path, endpoint)


def test_right_at_once(run):
    result = run([FENCED], [PASSES])
    assert (result.passed, result.source, result.llm_calls, result.tokens) == (True, GOOD, 1, 1200)
    assert run.tested == [GOOD]
    assert run.kinds == [EventKind.PROMPTED, EventKind.ANSWERED, EventKind.LINT_CLEAN, EventKind.TEST_PASSED]
    assert "PASSED after 1 LLM calls, 1 dialogs" in result.message


def test_lint_then_wrong_then_right(run):
    result = run(["no code", UNCLEAN, FENCED, LATER], [FAILS, PASSES])
    assert result.passed
    assert result.source == LATER.removeprefix("```python\n").removesuffix("```")
    assert "[answer-format] no ```python block" in run.said(1)
    assert "[name] torch.exp is not allowed in host code (line" in run.said(2)
    assert "Cases by outcome: 1 CRASH, 1 PASS, 1 WRONG. The first that fails:\n\nthe report" in run.said(3)
    assert len(run.endpoint.requests[3]["messages"]) == 8, "the whole conversation is sent"


def test_a_skipped_case_keeps_a_kernel_from_passing(run):
    assert run([FENCED, LATER], [verdicts(Outcome.PASS, Outcome.SKIPPED), PASSES]).passed
    assert "A case was not run." in run.said(1)


def test_a_kernel_that_was_not_tested_never_passes(run):
    result = run([FENCED], [[]])
    assert (result.stage, result.cause) == (Stage.ABORTED, "no case of this operator could be tested")


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.PASS])
def test_every_failing_outcome_gets_feedback(run, outcome):
    assert run([FENCED, LATER], [verdicts(outcome), PASSES]).passed
    assert "the report" in run.said(1)
    assert (EventKind.DEBUGGED in run.kinds) == (outcome in (Outcome.CRASH, Outcome.TIMEOUT))


def test_dialogs_and_calls_are_limited(run):
    result = run([FENCED, LATER, FENCED, LATER], [FAILS] * 4, limits=DialogLimits(dialogs=2, calls=2))
    assert (result.stage, result.dialogs, result.llm_calls) == (Stage.OUT_OF_DIALOGS, 2, 4)
    assert not result.passed
    second_opening = run.endpoint.requests[2]["messages"]
    assert [m["role"] for m in second_opening] == ["system", "user"]
    assert "later_exponential" in second_opening[1]["content"], "the new dialog starts from the latest kernel"
    assert "the report" in second_opening[1]["content"]


def test_a_finished_run_is_not_run_again_unless_asked(run):
    limits = DialogLimits(dialogs=1, calls=1)
    first = run([FENCED], [FAILS], limits=limits)
    assert run([], [], limits=limits) == first
    assert len(run.endpoint.requests) == 1
    assert run([FENCED], [PASSES], limits=limits, restart=True).passed


def test_context_overflow_reported_by_the_server_opens_a_new_dialog(run):
    overflow = (400, {"message": "too long", "code": "context_length_exceeded"})
    result = run([FENCED, overflow, LATER], [FAILS, PASSES])
    assert result.passed
    assert result.dialogs == 2


def test_a_full_context_opens_a_new_dialog(run):
    usage = {"prompt_tokens": 49_800, "completion_tokens": 490, "total_tokens": 50_290}
    long = {"choices": [{"message": {"content": FENCED}}], "usage": usage}
    result = run([long, LATER], [FAILS, PASSES], limits=DialogLimits(context=50_000))
    assert result.passed
    assert result.dialogs == 2, "no room is left for the feedback"


def test_long_reports_are_summarised_by_the_model(run):
    log = "error: bad type\n" * 2_000
    failing = verdicts(Outcome.COMPILE_ERROR, report=log)
    result = run([FENCED, "the summary", LATER], [failing, PASSES])
    assert result.passed
    assert result.llm_calls == 3
    assert run.said(1).startswith("Below is the report of a failed test")
    assert run.endpoint.requests[1]["messages"][0]["role"] == "user"
    assert "the summary" in run.said(2)
    assert "error: bad type" not in run.said(2)


def test_without_summaries_long_reports_are_cut(run):
    failing = verdicts(Outcome.COMPILE_ERROR, report="x" * 100_000)
    assert run([FENCED, LATER], [failing, PASSES], switches=Switches(summarize=False)).passed
    assert "characters left out" in run.said(1)
    assert len(run.said(1)) < 10_000


def test_without_lint_only_the_form_is_checked(run):
    assert run(["prose", UNCLEAN], [PASSES], switches=Switches(lint=False)).passed
    assert "torch.exp(self)" in run.tested[0]


def test_without_debug_a_crash_is_a_failure_like_others(run):
    assert run([FENCED, LATER], [verdicts(Outcome.CRASH), PASSES], switches=Switches(debug=False)).passed
    assert EventKind.DEBUGGED not in run.kinds


def test_a_failing_model_aborts_with_the_cause_and_goes_on_later(run):
    result = run([FENCED, 401], [FAILS])
    assert result.stage is Stage.ABORTED
    assert "HTTP 401: the key was refused" in result.cause
    assert result.cause in result.message
    resumed = run([LATER], [PASSES])
    assert resumed.passed
    assert resumed.llm_calls == 2
    assert len(run.endpoint.requests) == 3, "the first answer is not asked for again"
    assert run.endpoint.requests[1]["messages"] == run.endpoint.requests[2]["messages"]


def test_a_failing_summary_aborts_and_goes_on_later(run):
    failing = verdicts(Outcome.COMPILE_ERROR, report="x" * 10_000)
    assert run([FENCED, 404], [failing]).stage is Stage.ABORTED
    assert run(["the summary", LATER], [PASSES]).passed
    assert "the summary" in run.said(3)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RuntimeError("the sandbox could not be started")])
def test_interruptions_pass_through_and_leave_a_resumable_journal(run, stop):
    with pytest.raises(type(stop)):
        run([FENCED], [stop])
    assert run([], [PASSES]).passed
    assert len(run.endpoint.requests) == 1


def test_the_journal_tells_the_story_and_holds_no_key(run):
    run([UNCLEAN, FENCED, 401], [FAILS])
    text = run.journal.path.read_text()
    assert "secret" not in text
    kinds = Counter(event_of(r).kind for r in read_journal(run.journal.path) if "event" in r)
    assert kinds[EventKind.ANSWERED] == 2
    requests = [r for r in read_journal(run.journal.path) if "request" in r]
    assert [r["number"] for r in requests] == [1, 2, 3]


@pytest.mark.parametrize(
    "answer",
    ["", "Sorry.", FENCED + "\n" + FENCED, FENCED[:-20], "x" * 1_000_000, "```python\n```", "```python\n\0\n```"],
)
def test_bad_answers_get_feedback_and_no_test(run, answer):
    assert run([answer, FENCED], [PASSES]).passed
    assert run.tested == [GOOD]


def test_a_model_that_repeats_itself_runs_out_of_dialogs(run):
    result = run([UNCLEAN] * 4, [], limits=DialogLimits(dialogs=2, calls=2))
    assert result.stage is Stage.OUT_OF_DIALOGS
    assert run.tested == []


def test_a_file_that_no_case_reaches_whole_is_told_so(run):
    unreached = Verdict(ACCEPTANCE, Outcome.WRONG, "line 9 never ran", "line 9 never ran", rule=UNREACHED)
    result = run([FENCED, LATER], [[*PASSES, unreached], PASSES])
    told = run.said(1)
    assert result.passed and told.startswith("Every case passes") and "line 9 never ran" in told
    assert "WRONG" not in told and "result is wrong" not in told


def test_a_file_that_acceptance_finds_to_break_rules_is_told_so(run):
    broken = Verdict(ACCEPTANCE, Outcome.WRONG, "lint", "[shadowing] 'line' is bound again", rule=LINT)
    result = run([FENCED, LATER], [[*PASSES, broken], PASSES], switches=Switches(lint=False))
    told = run.said(1)
    assert result.passed and told.startswith("The file breaks rules of the dialect") and "[shadowing]" in told
    assert "WRONG" not in told and "result is wrong" not in told


def test_feedback_tells_dtypes_apart(tmp_path):
    """The first thing that a programmer wants to know of 14 wrong cases out of 25."""
    verdicts = [Verdict(str(i), Outcome.PASS, dtypes="float32") for i in range(2)]
    verdicts += [Verdict("w", Outcome.WRONG, dtypes="bfloat16"), Verdict("i", Outcome.PASS)]
    assert _by_dtype(verdicts) == "By dtype: bfloat16: 1 WRONG; float32: 2 PASS; no floating dtype: 1 PASS."
    assert _by_dtype([Verdict("a", Outcome.WRONG, dtypes="float32"), Verdict("b", Outcome.WRONG)]) == ""
    passed = Verdict("a", Outcome.PASS, dtypes="float32")
    assert _by_dtype([passed, Verdict(ACCEPTANCE, Outcome.WRONG), Verdict(FILE, Outcome.CHEAT)]) == ""
