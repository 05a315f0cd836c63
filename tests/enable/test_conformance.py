"""`enable conformance`: a sample of each suite, and wrong kernels that each check has to report."""

import fcntl
import importlib.util
import json
import shutil
import sys

import pytest
import torch
import yaml

from enable import library
from enable.conformance import answers, results, torchcts
from enable.conformance.answers import Probe, Response, answer, differences, tolerances
from enable.conformance.driver import SuiteRun
from enable.conformance.options import CHECKS, SuiteOptions
from enable.conformance.results import Exemption, Line, append, begin, failure_lines, report
from generate.kernel_library import KERNELS, Library
from traces import UserError

KERNEL = '''"""aten::{name}(Tensor self) -> Tensor

{fault}
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::{name}",)
DTYPES = ("float32",)


@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + places, places < n)
    tl.store(out + places, {value}, places < n)
    {more}


def wrapper(self):
    {before}
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    kernel[(triton.cdiv(self.numel(), 256),)](self, out, self.numel(), 256)
    return {result}
'''
CLONE = '''"""aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor

It reads the memory of a conjugated tensor as if it had no conjugate bit.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::clone",)
DTYPES = ("complex64",)


@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places, places < n), places < n)


def wrapper(self, *, memory_format=None):
    bare = self.conj() if self.is_conj() else self
    out = torch.empty_like(bare)
    n = 2 * self.numel()
    kernel[(triton.cdiv(n, 256),)](torch.view_as_real(bare), torch.view_as_real(out), n, 256)
    return out
'''
WRONG = {
    "exp": {"fault": "It ignores strides.", "value": "tl.exp(values)"},
    "cos": {"fault": "It is not accurate.", "value": "tl.cos(values) * 1.001"},
    "abs": {
        "fault": "It writes its input.",
        "value": "tl.abs(values)",
        "more": "tl.store(x + places, values * 0, places < n)",
    },
    "sqrt": {
        "fault": "It raises after its launch.",
        "value": "tl.sqrt(values)",
        "result": "out.select(99, 0)",
    },
    "relu": {"fault": "It returns its input.", "value": "values", "result": "self"},
    "floor": {
        "fault": "Its result is transposed.",
        "value": "tl.floor(values)",
        "result": "out.mT if out.dim() > 1 else out",
    },
}


def write(directory, kernels):
    (directory / "pointwise").mkdir(parents=True, exist_ok=True)
    for name, parts in kernels.items():
        filled = {"name": name, "more": "pass", "before": "pass", "result": "out", **parts}
        (directory / "pointwise" / f"{name}.py").write_text(KERNEL.format(**filled))
    return directory


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    directory = write(tmp_path_factory.mktemp("wrong"), WRONG)
    (directory / "copy").mkdir()
    (directory / "copy" / "clone.py").write_text(CLONE)
    shutil.copy(KERNELS / "copy" / "copy_.py", directory / "copy")  # for what is derived
    return directory


def failures(out):
    told = json.loads(out)
    return {(f["item"], f["check"], f["kind"]) for f in told["failures"]}, told


def test_checks_of_opinfo_report_wrong_kernels(enable, wrong):
    words = ["conformance", "opinfo", "--library", wrong, "--json", "--samples", 2, "--dtypes", "float32,complex64"]
    words += ["--ops", "exp,cos,abs,sqrt,nn.functional.relu,floor,clone"]
    status, out, err = enable(*words, "--checks", "forward,noncontiguous,bits,out")
    assert status == 1, err
    found, told = failures(out)
    assert {
        ("exp", "noncontiguous", "values"),
        ("cos", "forward", "values"),
        ("cos", "out", "values"),
        ("abs", "forward", "values"),
        ("sqrt", "forward", "raises"),
        ("nn.functional.relu", "forward", "alias"),
        ("floor", "forward", "geometry"),
        ("clone", "bits", "values"),
    } <= found
    assert ("exp", "forward", "values") not in found  # contiguous samples are right
    assert not [f for f in told["failures"] if f["item"] == "clone" and f["check"] == "forward"]
    rows = {row["check"]: row for row in told["rows"]}
    for row in rows.values():
        assert row["samples"] == row["passed"] + row["as native"] + row["failing"] + row["known"]
    assert rows["forward"]["served"] > 0


def test_checks_of_dispatch_report_wrong_kernels(enable, wrong):
    words = ["conformance", "dispatch", "--library", wrong, "--json", "--samples", 1, "--dtypes", "float32,complex64"]
    status, out, err = enable(*words, "--ops", "aten::exp,aten::clone,aten::cos,aten::relu")
    assert status == 1, err
    found, _ = failures(out)
    assert {
        ("aten::exp", "stride", "values"),
        ("aten::clone", "bit", "values"),
        ("aten::cos", "repeated", "values"),
        ("aten::relu", "repeated", "alias"),
    } <= found
    assert ("aten::exp", "repeated", "values") not in found


def test_a_sample_of_the_library_passes(enable):
    words = ["conformance", "opinfo", "--samples", 1, "--dtypes", "float32", "--checks", "forward,noncontiguous"]
    status, out, err = enable(*words, "--ops", "exp,sum")
    assert status == 0, out + err
    assert "opinfo on cpu: 2 items" in out and "failing" in out
    status, out, _ = enable("conformance", "report", "--json")
    told = json.loads(out)
    assert status == 0 and told["sound"] and told["items"] == 2


WORKER = """
import json, os, sys, time

directory, index = sys.argv[1:3]
run = json.load(open(f"{directory}/run.json"))

def note(item, check, phase):
    now = {"item": item, "check": check, "label": "0", "phase": phase, "message": "", "at": time.time()}
    open(f"{directory}/now-{index}", "w").write(json.dumps(now))

def ended(item):
    with open(run["results"], "a") as file:
        file.write(json.dumps({"item": item, "checks": {}, "failures": [], "done": True, "seconds": 0.0}) + "\\n")

open(f"{directory}/total", "w").write("2 2")
if len(sys.argv) == 3:
    ended("exp")
    note("sin", "forward", PHASE)
    END
again = json.loads(sys.argv[3])
assert again == {"item": "sin", "without": ["forward"]}
ended("sin")
note("", "", "finished")
"""


@pytest.mark.parametrize(
    ("phase", "end", "kind"),
    [
        ("ours", "os.abort()", "CRASH"),
        ("ours", "time.sleep(100)", "TIMEOUT"),
        ("native", "os.abort()", None),
        ("native", "sys.exit(77)", None),
    ],
)
def test_a_run_survives_what_ends_or_hangs_a_worker(tmp_path, phase, end, kind):
    script, path = tmp_path / "worker.py", tmp_path / "opinfo-cpu.jsonl"
    script.write_text(WORKER.replace("PHASE", repr(phase)).replace("END", end))
    run = SuiteRun(SuiteOptions("opinfo"), path, seconds=60, workers=1, timeout=5)
    run.command = lambda directory, index: [sys.executable, str(script), str(directory), str(index)]
    assert run.run()
    told = report([path], [])
    assert told.items == 2 and told.sound is (kind is None)
    assert [(f["item"], f["check"], f["kind"]) for f in told.failures] == ([("sin", "forward", kind)] if kind else [])
    assert not (tmp_path / "opinfo-cpu.run").exists()


def test_a_run_that_is_out_of_time_is_resumed(tmp_path):
    script, path = tmp_path / "worker.py", tmp_path / "opinfo-cpu.jsonl"
    script.write_text(WORKER.replace("PHASE", "'samples'").replace("END", "sys.exit(0)"))
    run = SuiteRun(SuiteOptions("opinfo"), path, seconds=60, workers=1, timeout=1)
    run.command = lambda directory, index: [sys.executable, str(script), str(directory), str(index)]
    assert not run.run()  # one of two items has a line
    run.resume = True
    assert begin(path, run.options, resume=True) == {"exp"}


def test_two_runs_do_not_write_one_file(tmp_path):
    path = tmp_path / "opinfo-cpu.jsonl"
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another run writes it"):
            SuiteRun(SuiteOptions("opinfo"), path, seconds=1, workers=1, timeout=1).run()


def test_workers_that_cannot_start_are_no_result(tmp_path):
    run = SuiteRun(SuiteOptions("opinfo"), tmp_path / "opinfo-cpu.jsonl", seconds=60, workers=1, timeout=1)
    run.command = lambda directory, index: [sys.executable, "-c", "raise SystemExit('no torch')"]
    with pytest.raises(UserError, match="no worker of opinfo could start: .*no torch"):
        run.run()


def test_a_sample_of_torchcts_passes(enable):
    if importlib.util.find_spec("torchcts") is None:
        pytest.skip(f"TorchCTS is not installed: {torchcts.INSTALL}")
    words = ["conformance", "torchcts", "--dtypes", "float32", "--checks", "strides", "--samples", 1]
    status, out, err = enable(*words, "--ops", "*::test_unary_op_noncontiguous*relu[]]", "--seconds", 120)
    assert status == 0 and "torchcts on cpu: 0 items" not in out, out + err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["opinf"], "unknown suite 'opinf', did you mean opinfo? choose from opinfo, dispatch, torchcts, report"),
        (["opinfo", "--device", "tpu"], "unknown device 'tpu', did you mean cpu? choose from cpu, cuda"),
        (["opinfo", "--checks", "foo"], "unknown check 'foo'; choose from forward"),
        (["dispatch", "--dtypes", "float33"], "unknown dtype 'float33', did you mean float32"),
        (["opinfo", "--shard", "4/4"], "shard 4/4: choose 0/4 to 3/4"),
        (["opinfo", "--shard", "0/0"], "shard 0/0: choose I/N with N of at least 1"),
        (["opinfo", "--ops", "nope", "--workers", 1], "--ops nope: opinfo has no such item"),
        (["opinfo", "--shard", "one"], "shard 'one': write I/N"),
        (["opinfo", "--library", "/nowhere"], "--library /nowhere: no such directory"),
        (["report"], "no results on cpu in"),
    ],
)
def test_bad_input_is_refused_in_one_line(enable, words, message):
    status, out, err = enable("conformance", *words)
    lines = [line for line in err.splitlines() if not line.startswith("conformance ")]  # progress, on a slow machine
    assert status == 2 and len(lines) == 1 and message in lines[0] and not out


def test_torchcts_has_to_be_installed(enable, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status, _, err = enable("conformance", "torchcts")
    assert status == 2 and "pip install --no-deps torchcts==0.4.1" in err


# -- results ----------------------------------------------------------------------------------------------------------


def line_of(item, failed=0, **failure):
    line = Line(item)
    for _ in range(failed):
        line.count("forward", "samples", "failed")
        line.failures.append({"check": "forward", "label": "0", "kind": "values", "detail": "", **failure})
    line.count("forward", "samples", "passed")
    return line


def test_a_torn_line_is_dropped_and_the_rest_is_resumed(tmp_path):
    path, options = tmp_path / "opinfo-cpu.jsonl", SuiteOptions("opinfo")
    assert begin(path, options, resume=False) == set()
    append(path, line_of("exp"))
    with open(path, "a") as file:
        file.write('{"item": "lo')
    assert begin(path, options, resume=True) == {"exp"}
    append(path, line_of("log"))
    assert [line.item for line in results.read(path)[1]] == ["exp", "log"]
    with pytest.raises(UserError, match="differs in samples"):
        begin(path, SuiteOptions("opinfo", samples=9), resume=True)


@pytest.mark.parametrize("line", [b'{"a": 1}', b"[1]", b"\xff\xfe"])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "x.jsonl"
    begin(path, SuiteOptions("opinfo"), resume=False)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(UserError, match="line 2 is damaged .* remove the file"):
        results.read(path)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other"}', "\x00\x01"])
def test_a_file_of_another_kind_is_refused(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(UserError, match="not a file of conformance results"):
        results.read(tmp_path / "x.jsonl")


def test_a_file_of_another_version_is_refused(tmp_path):
    (tmp_path / "x.jsonl").write_text(json.dumps({"format": results.FORMAT, "version": 99}) + "\n")
    with pytest.raises(UserError, match="version 99, this is version 1"):
        results.read(tmp_path / "x.jsonl")


def test_known_differences_do_not_count_and_others_do(tmp_path):
    path = tmp_path / "opinfo-cpu.jsonl"
    begin(path, SuiteOptions("opinfo"), resume=False)
    append(path, line_of("exp", 1))
    append(path, line_of("log", 1))
    known = [Exemption("opinfo", "a reason", item="ex*", kind="values")]
    told = report([path], known)
    assert not told.sound and [f["item"] for f in told.failures] == ["log"] and told.known[0]["reason"] == "a reason"
    assert told.rows[0]["failing"] == 1 and told.rows[0]["known"] == 1
    assert "--ops log --checks forward" in next(failure_lines(told, ["enable", "conformance", "opinfo"]))
    assert report([path], [*known, Exemption("opinfo", "another", item="log")]).sound


def test_every_known_difference_has_a_row_in_the_documentation():
    page = (results.EXCEPTIONS.parents[2] / "docs" / "results" / "outside.md").read_text()
    for row in yaml.safe_load(results.EXCEPTIONS.read_text()) or ():
        assert row["reason"] in page, row


def test_checks_that_are_named_are_those_there_are():
    from enable.conformance import opinfo

    assert tuple(opinfo.CHECKS) == CHECKS["opinfo"]


# -- answers ----------------------------------------------------------------------------------------------------------


def found(native, ours, wide=None):
    probe = Probe("forward", "", lambda: None)
    return [d.kind for d in differences(probe, native, ours, tolerances(), lambda: wide or Response())]


def result(*values, dtype=torch.float32, **options):
    return Response([torch.tensor(values, dtype=dtype)], "leaf", **options)


def test_a_kernel_may_be_as_far_from_the_reference_as_pytorch():
    native, reference = result(1.001), result(1.0, dtype=torch.float64)
    assert found(native, result(0.998), reference) == []
    assert found(native, result(0.99), reference) == ["values"]
    assert found(native, result(0.998)) == ["values"]  # without a reference the tolerance counts alone


@pytest.mark.parametrize("pair", [(float("nan"), 1.0), (float("inf"), -float("inf")), (1.0, float("inf"))])
def test_special_values_are_compared(pair):
    native, ours = pair
    assert found(result(native), result(ours)) == ["values"]
    assert found(result(native), result(native)) == []


def test_exceptions_are_compared():
    refused = Response(error=("RuntimeError", "no"))
    assert found(refused, result(1.0)) == ["accepts"] and found(result(1.0), refused) == ["raises"]
    assert found(refused, Response(error=("ValueError", "no"))) == ["error"] and found(refused, refused) == []


def test_draws_are_compared_by_their_form():
    drawn = answer(Probe("forward", "", lambda: torch.rand(3)), "cpu")
    assert drawn.drew and found(drawn, Response([torch.zeros(3)], drawn.structure)) == []
    assert found(drawn, Response([torch.zeros(4)], drawn.structure)) == ["geometry"]
    assert not answer(Probe("forward", "", lambda: torch.ones(3)), "cpu").drew


def test_a_lost_gpu_ends_the_worker():
    def call():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(answers.DeviceLost):
        answer(Probe("forward", "", call), "cpu")


# -- the registration ------------------------------------------------------------------------------------------------


def test_a_registration_can_be_suspended(tmp_path):
    kernels = Library(write(tmp_path, {"exp": {"fault": "Its result is 1.", "value": "values * 0 + 1"}}))
    x = torch.full((4,), 2.0)
    with library.use("cpu", unverified=True, library=kernels) as registration:
        assert torch.exp(x).tolist() == [1.0] * 4
        with registration.suspended():
            assert torch.exp(x)[0] > 7
        assert torch.exp(x).tolist() == [1.0] * 4
        assert registration.counts.served["aten::exp"] == 2
        with library.use("cpu", unverified=True, library=kernels), pytest.raises(UserError, match="latest"):
            registration.suspended().__enter__()
    assert torch.exp(x)[0] > 7
