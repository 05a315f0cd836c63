"""A platform's blocks may replace functions of Triton's language."""

from pathlib import Path

import pytest
import torch

from generate import BLOCKS
from generate.kernel_library import KERNELS
from traces import UserError
from verify import platforms
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.judging.judge import Judge
from verify.judging.verdicts import VerdictStore
from verify.linking import link, written
from verify.lint import load_profile
from verify.lint.profile import DIRECTORY
from verify.outcome import Outcome

WITHOUT_ERF = (DIRECTORY / "without_erf", BLOCKS)
SOURCE = '''\
import triton
import triton.language as tl


@triton.jit
def halves(x):
    """Not tl.erf."""
    return 0.5 * tl.erf(x) + 0.5 * tl.math.erf(x) if "é" != "tl.erf" else tl.erf(x)  # tl.erf
'''


def test_names_are_replaced_in_code_alone():
    linked = link(SOURCE, WITHOUT_ERF)
    line = linked.split("\n")[7]
    assert line == '    return 0.5 * tl_erf(x) + 0.5 * tl_erf(x) if "é" != "tl.erf" else tl_erf(x)  # tl.erf'
    assert '"""Not tl.erf."""' in linked and "def tl_erf(x):" in linked and "def scaled_erfc(" in linked
    at = linked[: linked.index("def tl_erf")].count("\n") + 1
    assert written(linked, at)[0] == "blocks/language.py"
    assert link(SOURCE, (BLOCKS,)) == SOURCE


def test_blocks_are_replaced_too_and_the_key_changes(tmp_path):
    files = [KERNELS / f"{name}.py" for name in ("pointwise/gelu", "special/erfc", "pointwise/exp")]
    usual, own = ([KernelFile.read(f, blocks) for f in files] for blocks in ((BLOCKS,), WITHOUT_ERF))
    assert "tl.erf(" in usual[1].source and not any("tl.erf(" in kernel.source for kernel in own)
    assert [a.key == b.key for a, b in zip(usual, own, strict=True)] == [False, False, True]


def test_a_constant_is_replaced(tmp_path):
    (tmp_path / "language.py").write_text("import triton.language as tl\n\ntl_float64 = tl.constexpr(tl.float32)\n")
    linked = link("import triton.language as tl\n\n\ndef f(x):\n    return x.to(tl.float64)\n", (tmp_path, BLOCKS))
    assert "x.to(tl_float64)" in linked and "tl_float64 = tl.constexpr(tl.float32)" in linked


def test_every_kernel_without_erf_computes_it(tmp_path):
    """Values of each branch of the replacement, in both of its dtypes; tolerances are those of every kernel."""
    path = tmp_path / "mychip.yaml"
    path.write_text(
        "base: sim\nlint:\n  base: triton\n  blocks: [without_erf]\n"
        "  remove:\n    kernel: {names: [tl.erf, tl.math.erf]}\n"
    )
    platform = platforms.load(str(path))
    assert load_profile(platform.lint).blocks == WITHOUT_ERF[:1]
    ends = [0.0, -0.0, 1e-30, 1e-40, 0.5, -0.5, 30.0, float("inf"), -float("inf"), float("nan")]
    x = torch.cat([torch.tensor(ends, dtype=torch.float64), torch.linspace(-6, 6, 2001, dtype=torch.float64)])
    jobs = []
    for name in ("erf", "gelu"):
        kernel = KernelFile.read(KERNELS / "pointwise" / f"{name}.py", WITHOUT_ERF)
        cases = tuple(case_of_values(f"aten::{name}", self=x.to(dtype)) for dtype in (torch.float32, torch.float64))
        jobs.append(Job(Plan(f"aten::{name}", f"aten::{name}"), kernel, cases, dialect=""))
    with Judge(platform, VerdictStore(tmp_path / "verdicts.sqlite"), workers=1) as judge:
        verdicts = judge.judge(jobs)
    assert len(verdicts) == 4 and all(v.outcome is Outcome.PASS for v in verdicts.values()), verdicts


def test_a_directory_of_blocks_has_to_be_there(tmp_path):
    path = tmp_path / "mychip.yaml"
    path.write_text("base: sim\nlint:\n  base: triton\n  blocks: [without_erf, ./mine]\n")
    with pytest.raises(UserError, match=r"mychip.yaml:4: no directory .*mine; name one .* choose from without_erf, "):
        load_profile(platforms.load(str(path)).lint)
    assert Path(DIRECTORY / "without_float64" / "types.py").is_file()
