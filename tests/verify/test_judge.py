"""The judge on committed kernels, of kernels.txt: the first word of a name is the outcome that it must get."""

import functools
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from corpus import Tables, replaced
from shared import compiled, judging

from verify import platforms
from verify.cases.case import Case, case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job, JudgeClosed
from verify.judging.reply import MalformedReply, Reply
from verify.outcome import Outcome
from verify.sandbox.processes import descendants

KERNELS = Tables(Path(__file__).with_name("kernels.txt")).kernels()
PLAIN = KERNELS["pass_plain"]
EXP = case_of_values("aten::exp", self=torch.linspace(-4, 4, 300).view(20, 15))


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    quick = replace(platforms.load("sim"), compile_seconds=20.0, execute_seconds=3.0)
    with judging(tmp_path_factory.mktemp("judge") / "verdicts.sqlite", quick) as judge:
        yield judge


def job_of(source, cases=(EXP,), **options):
    plan = Plan(cases[0].overload, cases[0].overload)
    return Job(plan, KernelFile.parse(source, Path("kernel.py")), tuple(cases), **options)


def verdict_on(judge, source, cases=(EXP,)):
    job = job_of(source, cases)
    found = judge.judge([job])
    return [found[job.plan.overload, c.id] for c in cases]


@pytest.fixture(scope="module")
def once(judge):
    """A function of a name: the verdict on its kernel, which is judged once, though it be no verdict for good."""
    return functools.cache(lambda name: verdict_on(judge, KERNELS[name])[0])


@pytest.mark.parametrize("name", KERNELS)
def test_outcome(once, name):
    expected = next(o for o in Outcome if name.startswith(o.value.lower()))
    verdict = once(name)
    assert verdict.outcome is expected, verdict
    assert bool(verdict.detail) or expected is Outcome.PASS
    assert bool(verdict.layer) == (expected not in (Outcome.PASS, Outcome.SKIPPED))
    assert verdict.sandbox.startswith("landlock")
    assert "\n" not in verdict.detail


def test_children_can_be_ready_before_a_case_needs_them(judge):
    judge.warm()
    ready = list(judge._started)
    assert len(ready) == 3  # one that compiles, one that executes, and one that does so again
    verdict_on(judge, KERNELS["crash_segfault"], [case_of_values("aten::exp", self=torch.randn(9))])
    judge.warm()
    assert judge._started == ready


def test_a_crash_does_not_touch_the_next_kernel(judge):
    assert verdict_on(judge, KERNELS["crash_segfault"])[0].outcome is Outcome.CRASH
    other = case_of_values("aten::exp", self=torch.randn(7))
    assert verdict_on(judge, PLAIN, [other])[0].outcome is Outcome.PASS


def test_after_two_deaths_the_rest_is_skipped_and_not_remembered(judge):
    cases = [case_of_values("aten::exp", self=torch.randn(n)) for n in (1, 2, 3)]
    outcomes = [v.outcome for v in verdict_on(judge, KERNELS["crash_os_exit"], cases)]
    assert outcomes == [Outcome.CRASH, Outcome.CRASH, Outcome.SKIPPED]
    assert verdict_on(judge, KERNELS["crash_os_exit"], cases[2:])[0].outcome is Outcome.CRASH


def test_all_cases_together_have_a_deadline(judge, monkeypatch):
    monkeypatch.setattr("verify.judging.judge.MAX_SECONDS", 0.0)
    cases = [case_of_values("aten::exp", self=torch.full((n,), 2.0)) for n in (31, 37, 41)]
    verdicts = verdict_on(judge, PLAIN, cases)
    assert [v.outcome for v in verdicts] == [Outcome.PASS, Outcome.TIMEOUT, Outcome.TIMEOUT]
    assert verdicts[1].layer == "time" and "the cases before took over" in verdicts[1].detail


def test_no_process_outlives_its_case(judge):
    def sleepers():
        out = subprocess.run(["ps", "-eo", "ppid,pid,args"], capture_output=True, text=True).stdout
        return [line for line in out.splitlines() if "verify.child.zygote" in line and line.split()[0] == "1"]

    case = case_of_values("aten::exp", self=torch.randn(13))
    before = sleepers()
    assert verdict_on(judge, KERNELS["runtime_error_leaves_a_daemon"], [case])[0].outcome is Outcome.RUNTIME_ERROR
    verdict_on(judge, PLAIN, [case])  # the zygote forks again only once it has cleaned up
    assert sleepers() == before


def test_a_timeout_is_no_verdict_for_good(judge):
    case = case_of_values("aten::exp", self=torch.randn(17))
    assert verdict_on(judge, KERNELS["timeout_kernel"], [case])[0].outcome is Outcome.TIMEOUT
    loaded = []
    again = Case(case.id, case.overload, "", lambda: loaded.append(case) or case.load())
    assert verdict_on(judge, KERNELS["timeout_kernel"], [again])[0].outcome is Outcome.TIMEOUT
    assert loaded


def test_an_in_place_result_from_the_host_is_a_cheat(judge):
    schema = "aten::exp(Tensor self)", "aten::copy_(Tensor(a!) self, Tensor src)"
    source = replaced(PLAIN, schema, ('("aten::exp",)', '("aten::copy_",)'))
    source = source[: source.index("def wrapper")]
    source += "def wrapper(self, src, non_blocking=False):\n    self.numpy()[...] = src.numpy()\n    return self\n"
    case = case_of_values("aten::copy_", self=torch.zeros(5), src=torch.randn(5))
    assert verdict_on(judge, source, [case])[0].outcome is Outcome.CHEAT


@pytest.mark.filterwarnings("ignore:.*quantized tensor creation:UserWarning")
def test_what_aten_cannot_answer_is_skipped_with_the_reason(judge):
    quantised = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    impossible = case_of_values("aten::exp", self=quantised)
    refused = case_of_values("aten::mm", self=torch.ones(2, 3), mat2=torch.ones(2, 3))
    (verdict,) = verdict_on(judge, PLAIN, [impossible])
    assert verdict.outcome is Outcome.SKIPPED and "quantised" in verdict.detail
    (verdict,) = verdict_on(judge, PLAIN, [refused])
    assert verdict.outcome is Outcome.SKIPPED and "does not answer" in verdict.detail


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"status": 1},
        {"status": "ok", "operators": 7},
        {"status": "ok", "kernels": [1]},
        {"status": "error", "text": 3},
    ],
)
def test_replies_that_no_child_of_ours_sends(header):
    with pytest.raises(MalformedReply):
        Reply.read(header)


def test_a_kernel_that_fails_in_its_fourth_call(judge):
    """Twice in other orders of its programs, then on the same memory with new contents."""
    counted = "    out =", "    CALLS.append(1)\n    assert len(CALLS) < 4, 'enough'\n    out ="
    source = replaced(PLAIN, ("def wrapper(self):\n", "CALLS = []\n\n\ndef wrapper(self):\n"), counted)
    (verdict,) = judge.judge([job_of(source, repeats=1)]).values()
    assert (verdict.outcome, verdict.layer, verdict.rule) == (Outcome.WRONG, "repeat", "contents")
    assert "new contents: AssertionError: enough" in verdict.detail


def test_reports_say_where_and_what(judge):
    (verdict,) = verdict_on(judge, KERNELS["wrong_first_block"])
    assert "236 of 300 elements wrong" in verdict.detail
    assert "from flat index 64 on" in verdict.report
    assert "self: shape [20, 15] float32" in verdict.report
    (verdict,) = verdict_on(judge, KERNELS["runtime_error_raises"])
    assert verdict.detail == "NotImplementedError: no such layout"
    assert "in wrapper: raise NotImplementedError" in verdict.report
    (verdict,) = verdict_on(judge, KERNELS["runtime_error_forged"])
    assert verdict.detail == "no reason was given"
    (verdict,) = verdict_on(judge, KERNELS["compile_error_host_python"])
    assert "print(open)" in verdict.report
    (verdict,) = verdict_on(judge, KERNELS["cheat_decorative_kernel"])
    assert "aten::exp" in verdict.detail


def test_reports_hold_nothing_of_this_machine(once):
    for name in KERNELS:
        verdict = once(name)
        assert "/tmp" not in verdict.report and "enable-" not in verdict.report and ".py" not in verdict.report


def test_kept_verdicts_are_not_judged_again(judge):
    case = case_of_values("aten::exp", self=torch.randn(11))
    first = verdict_on(judge, PLAIN, [case])
    broken = Case(case.id, case.overload, "", lambda: pytest.fail("the case was loaded again"))
    assert verdict_on(judge, PLAIN, [broken]) == first


def test_children_see_no_secret(judge, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    raises = "def wrapper(self):\n", "def wrapper(self):\n    raise ValueError(sorted(os.environ))\n"
    source = replaced(PLAIN, ("import torch\n", "import os\n\nimport torch\n"), raises)
    (verdict,) = verdict_on(judge, source)
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert "PATH" in verdict.detail and "OPENAI" not in verdict.report


def test_an_in_place_kernel_that_hardly_changes_anything_is_no_cheat(judge):
    names = ("aten::exp(Tensor self)", "aten::sqrt_(Tensor(a!) self)"), ('("aten::exp",)', '("aten::sqrt_",)')
    source = replaced(PLAIN, *names, ("tl.exp(tl.load(x_ptr + i, mask=i < n))", "1.0"))
    source = source[: source.index("    out = torch.empty_like(self)")]
    source += "    kernel_exp[(triton.cdiv(self.numel(), 64),)](self, self, self.numel(), BLOCK=64)\n    return self\n"
    case = case_of_values("aten::sqrt_", self=torch.tensor([1 + 2.0**-23, 1.0]))
    assert verdict_on(judge, source, [case])[0].outcome is Outcome.PASS


def test_what_closing_kills_has_no_verdict(tmp_path):
    """As when a campaign is stopped: its dialogs must not be told of a crash."""
    job = job_of(KERNELS["timeout_loop"])
    with judging(tmp_path / "v.sqlite", cache=compiled()) as judge, ThreadPoolExecutor(1) as pool:
        future = pool.submit(judge.judge, [job])
        while not any(descendants(zygote.pid) for zygote in list(judge._started)):
            time.sleep(0.02)
        judge.close()
        with pytest.raises(JudgeClosed):
            future.result()


def test_what_another_worker_met_is_told_not_that_the_judge_was_closed(tmp_path):
    """A full disk closes the judge from inside; a worker that gives up for that may be heard first."""
    given_up = threading.Event()

    def fail(item):
        raise OSError("no space left")

    def work(meets):
        if not meets:
            while not judge._closed:
                time.sleep(0.001)
            given_up.set()
            raise JudgeClosed("the judge was closed while a case was judged")
        try:
            judge.each(fail, [None])
        finally:
            assert given_up.wait(10)
            time.sleep(0.2)

    with judging(tmp_path / "v.sqlite", workers=2) as judge, pytest.raises(OSError, match="no space left"):
        judge.each(work, [False, True])


def test_variants_are_what_triton_specialises_to(judge):
    """The kernel takes two tensors and an integer."""

    def variants(*sizes, dtype=torch.float32):
        cases = [case_of_values("aten::exp", self=torch.randn(n).to(dtype)) for n in sizes]
        return {v.variants for v in verdict_on(judge, PLAIN, cases)}

    (plain,) = variants(3, 5, 7)
    assert plain.startswith("kernel_exp:")
    assert variants(16, 48) == variants(32) != {plain}, "multiples of 16"
    assert len({plain} | variants(1) | variants(16) | variants(3, dtype=torch.float16)) == 4


def test_workers_share_a_job_and_end_it_where_one_would(tmp_path):
    """Cases of two dtypes in turn; of float64 the kernel writes nothing where there are more than 8 elements."""
    count = "self.numel() % (9 if self.dtype == torch.float64 else 99)"
    less = "self, out, self.numel()", f"self, out, {count}"
    source = replaced(PLAIN, ('("float32",)', '("float32", "float64")'), less)
    dtypes = (torch.float32, torch.float64)
    cases = [case_of_values("aten::exp", self=torch.ones(k, dtype=d)) for k in range(1, 16) for d in dtypes]
    job = job_of(source, cases, first=True)
    for workers in (1, 2):
        with judging(tmp_path / f"{workers}.sqlite", workers=workers) as judge:
            found = judge.judge([job])
            started = len(judge._started)
        assert {c for _, c in found} == {c.id for c in cases[:18]}
        assert [found["aten::exp", c.id].outcome for c in cases[:18]] == [Outcome.PASS] * 17 + [Outcome.WRONG]
        assert started == 3 * workers, "of each worker one that compiles, one that executes and one that does so again"
