"""The debugger on CUDA: its reading of compute-sanitizer's words anywhere, the whole of it where there is a GPU."""

import os
import re
import shutil
from pathlib import Path

import pytest
import torch
from sources import NEG

from enable.cli import run
from traces import UserError
from verify import platforms
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.debugging import cuda_debugger
from verify.debugging.sanitizing import TOOLS, check_sanitizer
from verify.judging.judge import Job
from verify.sandbox import confine

STORE = "tl.store(y_ptr + i, -x, mask=mask)"
SAID = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at kernel_neg+0x190 in kernel.py:18
=========     by thread (48,0,0) in block (3,0,0)
=========     Access at 0x7f0a4b6003c0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f0a4b600000 of size 960 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernelEx [0x37aa07] in libcuda.so.580.159.04
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call to cu.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 2 errors
"""


def test_sanitizers_words_are_read():
    report = cuda_debugger._report(SAID, {0x7F0A4B600000: "self"}, NEG)
    assert "Invalid __global__ write of size 4 bytes\n" in report
    assert "at kernel_neg+0x190 in kernel file:18\n" in report and "by thread (48,0,0) in block (3,0,0)" in report
    assert "1 bytes after the memory of argument self, of size 960 bytes" in report.replace("the nearest", "the")
    assert f"  >   18 |     {STORE}" in report and "Host Frame" not in report


def test_the_same_error_of_many_threads_is_told_once():
    error = SAID[SAID.index("========= Invalid") : SAID.index("========= Program")]
    report = cuda_debugger._report(error + error.replace("thread (48", "thread (49"), {}, NEG)
    assert report.count("Invalid __global__ write") == 1 and "thread (48,0,0)" in report


def test_memory_that_the_wrapper_allocated_is_told_from_arguments():
    assert "memory that is no argument's, of size 960" in cuda_debugger._report(SAID, {}, NEG)


def test_what_ends_well_is_said():
    said = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    assert "ended without an error" in cuda_debugger._report(said, {}, NEG)


def test_without_the_sanitizer_the_last_words_are_shown():
    said = "RuntimeError: CUDA error: an illegal memory access\n  line 18, in wrapper: kernel_neg[...]\n"
    report = cuda_debugger._report(said, {}, NEG)
    assert "an illegal memory access" in report and f"  >   18 |     {STORE}" in report


def test_its_process_finds_packages_that_were_installed_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "theirs" / "some-1.0.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "theirs")
    found = cuda_debugger._environment(tmp_path, platforms.Device("cuda:0"))["PYTHONPATH"].split(os.pathsep)
    assert str(tmp_path / "theirs") in found and str(Path(confine.__file__).parents[2]) in found


RACE = """case number 0
case number 1
========= Error: Race reported between Write access at kernel_neg+0x190 in kernel.py:18
=========     and Read access at kernel_neg+0x1d0 in kernel.py:18 [16 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
CLEAN = "case number 0\ncase number 1\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


@pytest.fixture
def sanitized(monkeypatch):
    """What is made of this output of the tool, of two cases."""
    cases = [case_of_values("aten::neg", self=torch.arange(float(n))) for n in (2, 3)]
    job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(NEG, Path("k.py")), tuple(cases))

    def told(said):
        monkeypatch.setattr(cuda_debugger, "sanitizer", lambda: "compute-sanitizer")
        monkeypatch.setattr(cuda_debugger, "replayed", lambda *args: (said, {}))
        return cases, cuda_debugger.sanitized(job, cases, platforms.Device("cuda:0"), "none", "racecheck")

    return told


def test_what_a_tool_finds_is_told_of_the_case_that_ran(sanitized):
    cases, found = sanitized(RACE)
    assert found is not None and found[0] is cases[1]
    assert "Race reported between Write access at kernel_neg+0x190 in kernel file:18" in found[1]
    assert f"  >   18 |     {STORE}" in found[1] and "self: shape [3]" in found[1]
    assert sanitized(CLEAN)[1] is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (CLEAN.replace("case number 1\n", "RuntimeError: no device\n"), "RuntimeError: no device"),
        (CLEAN.replace("========= RACECHECK", "Target died; RACECHECK"), "did not come to the end of 2 cases"),
        ("", "it said nothing"),
    ],
)
def test_a_tool_that_does_not_come_to_its_end_is_no_pass(sanitized, said, words):
    with pytest.raises(UserError, match=words):
        sanitized(said)


@pytest.mark.parametrize(("platform", "words"), [("sim", "sim runs none"), ("cuda", "is not on the PATH; install")])
def test_where_nothing_can_be_sanitized(platform, words, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=words):
        check_sanitizer(platforms.load(platform))
    assert run(["verify", "aten::exp", "--sanitize", "--platform", platform]) == 2
    assert words in capsys.readouterr().err


gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.fixture(params=["none", "full"])
def debug(request):
    if request.param == "full" and confine.missing():
        pytest.skip("this machine has no Landlock or no seccomp")

    def told(body):
        source = NEG.replace(STORE, body)
        case = case_of_values("aten::neg", self=torch.arange(240.0).reshape(12, 20))
        job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("k.py")), (case,))
        report = cuda_debugger.debug_cuda(job, case, platforms.load("cuda").devices()[0], request.param)
        assert not re.search(r"0x[0-9a-f]{6,}|(^|\s)/\w+/", report) and "self: shape [12, 20]" in report
        return report

    return told


class TestOnAGpu:
    pytestmark = gpu

    @pytest.mark.skipif(not shutil.which("compute-sanitizer"), reason="no compute-sanitizer")
    def test_an_access_just_outside_is_found(self, debug):
        body = STORE.replace("mask=mask", "mask=i <= n")
        report = debug(body)
        assert "Invalid __global__ write of size 4 bytes" in report and f"  >   18 |     {body}" in report

    @pytest.mark.skipif(not shutil.which("compute-sanitizer"), reason="no compute-sanitizer")
    def test_a_read_just_outside_that_changes_nothing_is_found(self):
        read = "x = tl.load(x_ptr + i, mask=mask)"
        cases = [case_of_values("aten::neg", self=torch.arange(float(n))) for n in (128, 240)]
        sandbox = "none" if confine.missing() else "full"
        for source, right in ((NEG, True), (NEG.replace(read, "x = tl.load(x_ptr + i)"), False)):
            job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(source, Path("k.py")), tuple(cases))
            for tool in TOOLS:
                found = cuda_debugger.sanitized(job, cases, platforms.load("cuda").devices()[0], sandbox, tool)
                if right or tool == "racecheck":
                    assert found is None
                else:
                    assert found is not None and found[0] is cases[1]
                    assert "Invalid __global__ read of size 4 bytes" in found[1]

    def test_without_the_sanitizer(self, debug, monkeypatch):
        which = shutil.which
        monkeypatch.setattr(shutil, "which", lambda name: None if name == "compute-sanitizer" else which(name))
        assert "illegal memory access" in debug(STORE.replace("y_ptr + i", "y_ptr + i + (1 << 40)")).lower()

    def test_a_right_kernel(self, debug):
        assert "ended without an error" in debug(STORE)
