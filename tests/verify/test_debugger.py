"""The debugger on kernels that crash or hang, in real children of the sandbox."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from corpus import replaced
from sources import NEG

from verify import platforms
from verify.cases.case import case_of_values
from verify.child.witness import RECORD
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.debugging import debugger
from verify.judging.judge import Job
from verify.outcome import Outcome, Verdict
from verify.platforms import COMPILE, EXECUTE

KERNEL = replaced(NEG, ("import torch\n", "import ctypes\nimport os\nimport torch\n"))
STORE, GRID, RETURN = "    tl.store(y_ptr", "(triton.cdiv(n, 64),)", "    return y\n"
CASE = case_of_values("aten::neg", self=torch.arange(100.0).reshape(10, 10))
SIM = replace(platforms.load("sim"), execute_seconds=3.0)
CRASH, TIMEOUT = Outcome.CRASH, Outcome.TIMEOUT


@pytest.fixture
def debug(start):
    def told(source, outcome, detail="execute: it ended", platform=SIM):
        job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("k.py")), (CASE,))
        zygotes = {mode: start("full", mode) for mode in (COMPILE, EXECUTE)}
        return debugger.explain(platform, job, CASE, Verdict(CASE.id, outcome, detail, detail), zygotes)

    return told


def line_of(source, text):
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


BAD = {
    "segmentation fault": (KERNEL.replace(RETURN, "    ctypes.memset(16, 0, 8)\n" + RETURN), "ctypes.memset(16"),
    "abort": (KERNEL.replace(RETURN, "    os.abort()\n" + RETURN), "os.abort()"),
    "grid that crashes": (KERNEL.replace(GRID, "(lambda m: (ctypes.memset(16, 0, n),))"), "lambda m"),
}


@pytest.mark.parametrize("name", BAD)
def test_crashes_are_told_with_both_backtraces(debug, name):
    source, culprit = BAD[name]
    report = debug(source, CRASH)
    line = line_of(source, culprit)
    assert f"  > {line:4} |" in report and culprit in report
    assert f"kernel file, line {line}, " in report
    python, native = report.split("native code, innermost call first:\n")
    assert "  kernel file, line " in python.split("Python, innermost call first:\n")[1]
    assert ("abort in libc" if name == "abort" else "ffi_call in libffi") in native
    assert "self: shape [10, 10] float32" in report


def test_a_program_that_does_not_end_is_named(debug):
    source = KERNEL.replace(STORE, "    k = tl.program_id(0) * 0\n    while k < 9:\n        x = -x\n" + STORE)
    report = debug(source, TIMEOUT)
    assert "kernel_neg ran, launch 1 of the call: program (0, 0, 0), number 1 of 2 in the order they run." in report
    assert "a loop that does not end" in report
    place = re.search(r"^kernel file, line (\d+), kernel_neg:$", report, re.MULTILINE)
    assert int(place[1]) - line_of(source, "while k < 9") in (0, 1)


def test_too_many_programs_are_told_from_one_that_does_not_end(debug):
    report = debug(KERNEL.replace(GRID, "(1_000_000,)"), TIMEOUT)
    assert "of 1000000 in the order they run. Programs end, but there are too many" in report


def test_a_wrapper_that_loops_is_told(debug):
    source = KERNEL.replace("    kernel_neg[", "    while n:\n        kernel_neg[")
    report = debug(source, TIMEOUT, platform=replace(SIM, compile_seconds=4.0))
    assert re.search(r"launch \d{2,} of the call\). The wrapper goes on launching.", report)


def test_a_process_that_ends_itself_has_launched_or_not(debug):
    source = KERNEL.replace("    kernel_neg[", "    os._exit(3)\n    kernel_neg[")
    report = debug(source, CRASH, "compile: exited with status 3 before it answered")
    assert report.startswith("compile: exited with status 3 before it answered\nNo kernel had been launched.\n")


def test_what_does_not_happen_again_is_said(debug):
    report = debug(KERNEL, CRASH)
    assert report.startswith("execute: it ended\n\nWhen the case was run once more it ended with PASS")


def test_nothing_of_the_machine_is_in_a_report(debug):
    for source, _ in BAD.values():
        report = debug(source, CRASH)
        assert not re.search(r"0x[0-9a-f]{5,}|(^|\s)/\w|PID|Thread|/tmp|enable-|job-", report), report
        assert len(report) < 4000


def test_a_verdict_that_is_no_crash_has_its_own_report():
    job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(KERNEL, Path("k.py")), (CASE,))
    wrong = Verdict(CASE.id, Outcome.WRONG, "wrong", "the report")
    assert debugger.debug(SIM, job, CASE, wrong) == "the report"


def test_children_of_its_own():
    source, culprit = BAD["abort"]
    job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("k.py")), (CASE,))
    verdict = Verdict(CASE.id, CRASH, "execute: killed by SIGABRT", "")
    assert culprit in debugger.debug(SIM, job, CASE, verdict)


NO_RECORDS = ("[]", "{", '{"kernel": 3, "launches": 1, "began": 0}', '{"kernel": "k"}', '{"x": 1}')


@pytest.mark.parametrize("noted", NO_RECORDS)
def test_a_child_may_write_anything_into_its_log(noted):
    with tempfile.TemporaryFile() as log:
        log.write(noted.encode().ljust(RECORD) + b'  File "/a/job-1/t/kernel.py", line 9999 in \xff\n')
        log.flush()
        job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(KERNEL, Path("k.py")), (CASE,))
        died = Verdict(CASE.id, CRASH, "execute: killed by SIGSEGV", "execute: killed by SIGSEGV\n\narguments")
        report = debugger._report(died, died, job, log)
    assert report.startswith("execute: killed by SIGSEGV\nIt ended before the case began.") and "arguments" in report
