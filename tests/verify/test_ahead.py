"""Cases that are begun while the one before them is judged: each end is still that of its own case."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from shared import judging

from traces import TraceError
from traces.values import pack
from verify import platforms
from verify.cases.case import case_of_values
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging import judge as judge_module
from verify.judging.job_run import Run
from verify.judging.judge import Job, Judge
from verify.outcome import Outcome
from verify.platforms import COMPILE, EXECUTE
from verify.sandbox import wire
from verify.sandbox.children import ChildDied

PASS, CRASH, TIMEOUT, SKIPPED = Outcome.PASS, Outcome.CRASH, Outcome.TIMEOUT, Outcome.SKIPPED
SIZES = (100, 101, 102, 103, 104, 105)
COMPILES = "os.environ['TRITON_INTERPRET'] == '0'"
SECONDS = 3.0
CRASHES = "ctypes.string_at(0)"
HANGS = "time.sleep(600)"
READABLE = """
for fd in range(3, 64):
    try:
        there = stat.S_ISSOCK(os.fstat(fd).st_mode) and select.select([fd], [], [], 0)[0]
    except OSError:
        continue
    if there:
        raise ValueError("more than this case is here")
"""


def that_does(body, when="True"):
    """The smoke kernel, whose wrapper does `body` first in calls of which `when` holds."""
    lines = "\n".join(f"        {line}" for line in body.strip().split("\n"))
    source = KERNEL.replace("import torch\n", "import ctypes, os, select, stat, time\n\nimport torch\n", 1)
    return source.replace("def wrapper(self):\n", f"def wrapper(self):\n    if {when}:\n{lines}\n")


def cases_of(source, sizes=SIZES, **more):
    cases = tuple(case_of_values("aten::neg", self=torch.arange(float(n))) for n in sizes)
    return Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("neg.py")), cases, **more)


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """A judge of one worker, whose children run for some seconds at most."""
    platform = replace(platforms.load("sim"), compile_seconds=SECONDS, execute_seconds=SECONDS)
    with judging(tmp_path_factory.mktemp("ahead") / "verdicts.sqlite", platform) as judge:
        yield judge


def outcomes(judge, job):
    found = judge.judge([job])
    return [v.outcome if (v := found.get(("aten::neg", case.id))) else None for case in job.cases]


@pytest.mark.parametrize("where", [COMPILES, f"not {COMPILES}"], ids=["compile", "execute"])
@pytest.mark.parametrize(("body", "outcome"), [(CRASHES, CRASH), (HANGS, TIMEOUT)], ids=["crash", "timeout"])
def test_an_end_in_the_midst_is_of_its_case_and_costs_no_other_its_verdict(judge, where, body, outcome):
    job = cases_of(that_does(body, f"self.numel() == 102 and {where}"))
    assert outcomes(judge, job) == [PASS, PASS, outcome, PASS, PASS, PASS]


def test_cases_after_two_that_ended_so_are_not_run(judge):
    job = cases_of(that_does(CRASHES, "self.numel() in (101, 102)"))
    assert outcomes(judge, job) == [PASS, CRASH, CRASH, SKIPPED, SKIPPED, SKIPPED]


def test_the_time_of_a_case_begins_with_its_own_question(judge):
    """Of two slow calls each has its time, though the second was begun while the first ran."""
    job = cases_of(that_does(f"time.sleep({SECONDS * 0.6})", "self.numel() in (101, 102)"), SIZES[:3])
    assert outcomes(judge, job) == [PASS, PASS, PASS]


def test_what_was_begun_and_is_not_needed_is_not_waited_for(judge):
    platform = replace(judge.platform, compile_seconds=60.0)
    wrong = that_does(HANGS, f"self.numel() == 101 and {COMPILES}").replace("    return out", "    return out[:50]")
    with Judge(platform, judge._store, workers=1) as other:
        other.warm()
        started = time.monotonic()
        assert outcomes(other, cases_of(wrong, first=True)) == [Outcome.WRONG, None, None, None, None, None]
        assert time.monotonic() - started < 20


def test_a_case_that_cannot_be_read_is_the_command_s_end_when_its_turn_comes(judge):
    def damaged():
        raise TraceError("damaged")

    job = cases_of(KERNEL, (110, 111, 112))
    job = replace(job, cases=(*job.cases[:2], replace(job.cases[2], load=damaged)))
    seen = []
    with (
        Judge(judge.platform, judge._store, workers=1) as other,
        pytest.raises(TraceError, match="damaged"),
    ):
        other.judge([job], lambda job, verdict: seen.append(verdict.outcome))
    assert seen == [PASS, PASS]


def test_no_child_holds_a_case_before_it_has_answered_the_last(judge):
    assert outcomes(judge, cases_of(that_does(READABLE))) == [PASS] * len(SIZES)


@pytest.mark.parametrize("mode", [COMPILE, EXECUTE])
def test_a_child_that_held_two_cases_would_say_so(start, job_of, mode):
    with start("full", mode).fork(job_of(that_does(READABLE))) as child:
        for n in SIZES[:2]:
            wire.send_packed(child._sock, {}, pack({"self": torch.arange(float(n))}))
        assert wire.receive(child._sock, time.monotonic() + 20)[0]["text"].startswith("ValueError: more than this case")
        assert wire.receive(child._sock, time.monotonic() + 20)[0]["status"] == "ok"


def test_the_next_case_compiles_while_one_runs(judge):
    """Each call takes half a second where kernels compile and where they run."""
    took = {}
    for ahead in (0, judge_module.AHEAD):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(judge_module, "AHEAD", ahead)
            started = time.monotonic()
            slow = that_does(f"time.sleep({0.5 + 0.001 * ahead})")  # another kernel each time, with no verdict yet
            assert outcomes(judge, cases_of(slow)) == [PASS] * len(SIZES)
            took[ahead] = time.monotonic() - started
    assert took[judge_module.AHEAD] < took[0] - 1.0  # of six seconds


def test_closing_a_run_lets_go_of_who_waits(judge):
    """The thread that begins a case is told that its child died, and asks no other."""
    job = cases_of(that_does(HANGS, COMPILES))
    with judge._borrowed(()) as children:
        run = Run(job, replace(judge.platform, compile_seconds=60.0), children)
        with run:
            run.begin(job.cases[0])
            begun = run._begun[job.cases[0].id]
            time.sleep(1.0)
            assert not begun.done()
        assert isinstance(begun.result(0).compiled, ChildDied)
        with pytest.raises(ChildDied, match="nobody waits"):
            run._children.ask(COMPILE, job.cases[0].load(), {})
    assert not [t for t in threading.enumerate() if t.name.startswith("ahead") and t.is_alive()]
