"""A platform's dialect is judged by what is compiled for a call; a file is refused whole only for other violations."""

from pathlib import Path

import pytest
import torch

from generate import BLOCKS
from generate.kernel_library import KERNELS, Library
from verify import platforms
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.candidate import alone, read_candidate
from verify.judging.dialect import lacking, marks, refusal
from verify.judging.job import Job
from verify.judging.judge import Judge
from verify.judging.stages import TrialOptions, TrialStage
from verify.judging.trial import KernelTrial
from verify.judging.verdicts import VerdictStore
from verify.lint import load_profile
from verify.outcome import Outcome

CHIP = """\
base: sim
targets:
  - {backend: hip, arch: gfx942, warp_size: 64, shared_bytes: 65536}
lint:
  base: triton
  remove:
    host:
      functions:
        value: [torch.broadcast_shapes]
    kernel:
      names: [tl.atomic_add, tl.erf, tl.float64]
      annotations: [fp64, tl.float64]
  hints:
    tl.atomic_add: "this chip has no atomics: one program for each destination"
"""

NEG = '''\
"""aten::neg(Tensor self) -> Tensor

Stores -x, in one of several ways.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::neg",)
DTYPES = ("float32", "float16", "int32")


@triton.jit
def negated(x, WAY: tl.constexpr):
    if WAY == "erf":
        x = x + 0 * tl.erf(x)
    wide = x.to(tl.float64).to(x.dtype) if WAY == "float64" else x
    if WAY == "compared" and x.dtype == tl.float64:
        wide = x
    return 0 - wide


@triton.jit
def kernel(x_ptr, out_ptr, n, WAY: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, negated(tl.load(x_ptr + i, mask=i < n), WAY), mask=i < n)


@triton.jit
def summed(x_ptr, out_ptr, n, scale: tl.float64, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
    tl.debug_barrier()
    tl.atomic_add(out_ptr + i, 0 - tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(self):
    out = torch.empty_like(self)
    n = self.numel()
    if n == 5:
        summed[(1,)](self, out, n, 1.0, BLOCK=128)
    elif n:
        way = "erf" if n == 2 else "float64" if n == 3 else "compared" if n == 4 else "plain"
        kernel[((n + 127) // 128,)](self, out, n, WAY=way, BLOCK=128)
    return out
'''


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    path = tmp_path_factory.mktemp("chip") / "mychip.yaml"
    path.write_text(CHIP)
    return platforms.load(str(path))


@pytest.fixture(scope="module")
def judge(platform, tmp_path_factory):
    with Judge(platform, VerdictStore(tmp_path_factory.mktemp("store") / "verdicts.sqlite"), workers=1) as judge:
        yield judge


def case(n):
    return case_of_values("aten::neg", self=torch.arange(1.0, n + 1))


def job(source, *cases):
    kernel = KernelFile.parse(source, Path("neg.py"), (BLOCKS,))
    return Job(Plan("aten::neg", "aten::neg"), kernel, cases, dialect="")


def test_calls_are_refused_for_what_is_compiled_for_them(judge):
    sizes = (300, 1, 2, 3, 4, 5, 2)
    verdicts = judge.judge([job(NEG, *map(case, sizes))])
    by_size = {n: verdicts["aten::neg", case(n).id] for n in sizes}
    assert {n: v.outcome for n, v in by_size.items()} == {
        **dict.fromkeys((300, 1, 4), Outcome.PASS),  # a dtype that is only compared with is not computed in
        **dict.fromkeys((2, 3, 5), Outcome.COMPILE_ERROR),
    }
    assert all(v.layer == "lint" for v in by_size.values() if v.failed)
    assert by_size[2].detail.startswith("not in the dialect of mychip: tl.erf at neg.py:17; ")
    assert by_size[3].detail.startswith("not in the dialect of mychip: tl.float64 at neg.py:18; ")
    assert by_size[5].detail.startswith(
        "not in the dialect of mychip: annotation tl.float64 in a @triton.jit function at"
    )


def test_the_reason_says_what_to_write_instead(judge):
    verdict = judge.judge([job(NEG.replace("scale: tl.float64", "scale"), case(5))]).popitem()[1]
    assert verdict.detail == (
        "not in the dialect of mychip: tl.atomic_add at neg.py:35; "
        "this chip has no atomics: one program for each destination"
    )


def test_what_a_chip_lacks_is_read_from_the_detail(judge, tmp_path):
    path = tmp_path / "aligned.yaml"
    path.write_text("base: sim\nalignment: 64\n")
    shifted = job(NEG, case_of_values("aten::neg", self=torch.arange(8.0)[1:]))
    with Judge(platforms.load(str(path)), VerdictStore(tmp_path / "verdicts.sqlite"), workers=1) as aligned:
        found = [asked.judge([work]).popitem()[1] for asked, work in ((judge, job(NEG, case(2))), (aligned, shifted))]
    assert [lacking(verdict.detail) for verdict in found] == ["tl.erf", "limit alignment"]
    assert lacking("the values differ") == ""


def test_the_trial_has_the_same_verdicts_and_reasons(judge, platform, tmp_path):
    profile = load_profile(platform.lint).with_blocks(BLOCKS)
    candidate = read_candidate(NEG, Path("neg.py"), profile)
    for n, outcome in ((1, Outcome.PASS), (2, Outcome.COMPILE_ERROR)):
        options = TrialOptions(samples=False, extended=0, case=case(n).id)
        trial = KernelTrial(candidate, alone(candidate), judge, tmp_path, options)
        result = trial.run([TrialStage("recorded", [case(n)])])
        of_job = judge.judge([job(NEG, case(n))]).popitem()[1]
        assert result.outcome is outcome is of_job.outcome
        assert outcome is Outcome.PASS or (result.layer, result.detail) == ("lint", of_job.detail)


def test_a_method_is_refused_like_its_function(judge):
    by_size = {n: judge.judge([job(NEG.replace("tl.erf(x)", "x.erf()"), case(n))]).popitem()[1] for n in (1, 2)}
    assert by_size[1].outcome is Outcome.PASS and by_size[2].outcome is Outcome.COMPILE_ERROR
    assert "erf" in by_size[2].detail and "neg.py:17" in by_size[2].detail, by_size[2].detail


def test_what_no_call_decides_refuses_the_file(judge, platform):
    source = NEG.replace("n = self.numel()", "n = len(torch.broadcast_shapes(self.shape)) and self.numel()")
    refused = refusal(job(source), platform)
    assert refused is not None and refused.outcome is Outcome.COMPILE_ERROR and "neg.py:40" in refused.detail
    cheat = NEG.replace("out = torch.empty_like(self)", "out = torch.neg(self)")
    assert refusal(job(cheat), platform).outcome is Outcome.CHEAT


def test_a_forbidden_operator_of_torch_in_a_kernel_is_a_cheat_whatever_is_compiled(platform):
    cheat = NEG.replace("x = x + 0 * tl.erf(x)", "x = torch.neg(x)")
    assert refusal(job(cheat), platform).outcome is Outcome.CHEAT


@pytest.mark.parametrize("overload", ["aten::add.Tensor", "aten::embedding", "aten::linalg_vector_norm"])
def test_the_library_is_refused_by_call(platform, overload):
    """add scatters for sparse operands only, embedding needs atomics for max_norm, and norms float64 for float64."""
    match = Library(KERNELS).match(overload)
    job = Job(match.plan, match.kernel, (), match.copy, dialect="")
    assert refusal(job, platform) is None and marks(job, platform)
