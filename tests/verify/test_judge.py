"""The judge on committed kernels: the first word of a file's name is the outcome that it must get."""

from pathlib import Path

import pytest
import torch

from verify import platforms
from verify.cases import Case, case_of_values
from verify.derive import Plan
from verify.judge import Job, Judge
from verify.kernel_file import KernelFile
from verify.outcome import Outcome
from verify.verdicts import VerdictStore

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.py"))


EXP = case_of_values("aten::exp", self=torch.linspace(-4, 4, 300).view(20, 15))


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    platform = platforms.load("sim")
    quick = platforms.Platform(**{**vars(platform), "compile_seconds": 8.0, "execute_seconds": 3.0})
    store = VerdictStore(tmp_path_factory.mktemp("judge") / "verdicts.sqlite")
    with Judge(quick, store, workers=1) as judge:
        yield judge
    store.close()


def verdict_on(judge, path, cases=(EXP,)):
    plan = Plan(cases[0].overload, cases[0].overload)
    found = judge.judge([Job(plan, KernelFile.read(path), tuple(cases))])
    return [found[plan.overload, c.id] for c in cases]


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_outcome(judge, path):
    expected = next(o for o in Outcome if path.stem.startswith(o.value.lower()))
    (verdict,) = verdict_on(judge, path)
    assert verdict.outcome is expected, verdict
    assert bool(verdict.detail) == (expected is not Outcome.PASS)
    assert "\n" not in verdict.detail


def kernel(name):
    return next(p for p in KERNELS if p.stem == name)


def test_a_crash_does_not_touch_the_next_kernel(judge):
    assert verdict_on(judge, kernel("crash_segfault"))[0].outcome is Outcome.CRASH
    other = case_of_values("aten::exp", self=torch.randn(7))
    assert verdict_on(judge, kernel("pass_plain"), [other])[0].outcome is Outcome.PASS


def test_after_two_deaths_the_rest_is_skipped_and_not_remembered(judge):
    cases = [case_of_values("aten::exp", self=torch.randn(n)) for n in (1, 2, 3)]
    outcomes = [v.outcome for v in verdict_on(judge, kernel("crash_os_exit"), cases)]
    assert outcomes == [Outcome.CRASH, Outcome.CRASH, Outcome.SKIPPED]
    assert verdict_on(judge, kernel("crash_os_exit"), cases[2:])[0].outcome is Outcome.CRASH


def test_reports_say_where_and_what(judge):
    (verdict,) = verdict_on(judge, kernel("wrong_first_block"))
    assert "236 of 300 elements wrong" in verdict.detail
    assert "from flat index 64 on" in verdict.report
    assert "self: shape [20, 15] float32" in verdict.report
    (verdict,) = verdict_on(judge, kernel("runtime_error_raises"))
    assert verdict.detail == "NotImplementedError: no such layout"
    assert "in wrapper: raise NotImplementedError" in verdict.report
    (verdict,) = verdict_on(judge, kernel("compile_error_host_python"))
    assert "print(open)" in verdict.report
    (verdict,) = verdict_on(judge, kernel("cheat_decorative_kernel"))
    assert "aten::exp" in verdict.detail


def test_reports_hold_nothing_of_this_machine(judge):
    for path in KERNELS:
        (verdict,) = verdict_on(judge, path)
        assert "/tmp" not in verdict.report and "enable-" not in verdict.report and ".py" not in verdict.report


def test_kept_verdicts_are_not_judged_again(judge):
    case = case_of_values("aten::exp", self=torch.randn(11))
    first = verdict_on(judge, kernel("pass_plain"), [case])
    broken = Case(case.id, case.overload, "", lambda: pytest.fail("the case was loaded again"))
    assert verdict_on(judge, kernel("pass_plain"), [broken]) == first


def test_children_see_no_secret(judge, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    source = kernel("pass_plain").read_text().replace("import torch\n", "import os\n\nimport torch\n", 1)
    source = source.replace("def wrapper(self):\n", "def wrapper(self):\n    raise ValueError(sorted(os.environ))\n")
    path = tmp_path / "environment.py"
    path.write_text(source)
    (verdict,) = verdict_on(judge, path)
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert "PATH" in verdict.detail and "OPENAI" not in verdict.report
