"""Settings by target: all children of a job launch with those of what its kernels run on."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from shared import judging

from generate.kernel_library import KERNELS, Library
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.judging.asking import Children
from verify.judging.job import Job
from verify.outcome import Outcome

ROOT = Path(__file__).parents[2]

# One program of BLOCK elements: more than that many are right with the settings of sm_90 alone.
SOURCE = '''"""aten::neg(Tensor self) -> Tensor"""

import torch
import triton
import triton.language as tl
from blocks.tuning import tuned

OVERLOADS = ("aten::neg",)
DTYPES = ("float32",)
TUNED = (("", 0, 64), ("sm_90", 0, 256))


@triton.jit
def kernel_neg(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, -tl.load(x + i, mask=i < n), mask=i < n)


def wrapper(self):
    out = torch.empty_like(self)
    (block,) = tuned(TUNED, self.shape)
    kernel_neg[(1,)](self, out, self.numel(), BLOCK=block)
    return out
'''


def test_every_child_launches_with_the_settings_of_the_device(tmp_path, monkeypatch):
    kernel = Library(KERNELS).parse(SOURCE, Path("neg.py"))
    case = case_of_values("aten::neg", self=torch.arange(1.0, 201.0))
    found = {}
    for target in ("", "sm_80", "sm_90"):
        monkeypatch.setattr(Children, "_target", lambda self, target=target: target)
        with judging(tmp_path / f"{target}.sqlite") as judge:
            (verdict,) = judge.judge([Job(Plan("aten::neg", "aten::neg"), kernel, (case,))]).values()
            found[target] = verdict.outcome
    assert found == {"": Outcome.WRONG, "sm_80": Outcome.WRONG, "sm_90": Outcome.PASS}


@pytest.mark.parametrize(
    "rows, expected",
    [
        ('(("", 0, 256, 4), ("sm_90", 0, 256, 64))', Outcome.COMPILE_ERROR),  # of 64 warps no program can be had
        ('(("", 0, 256, 64), ("sm_90", 0, 256, 4))', Outcome.PASS),
        ('(("", 0, 256, 4), ("sm_80", 0, 256, 64))', Outcome.PASS),  # sm_80 is no target of sim
    ],
)
def test_each_target_is_compiled_for_with_its_own_settings(tmp_path, rows, expected):
    source = SOURCE.replace('(("", 0, 64), ("sm_90", 0, 256))', rows).replace("(block,) =", "block, warps =")
    source = source.replace("BLOCK=block)", "BLOCK=block, num_warps=warps)")
    kernel = Library(KERNELS).parse(source, Path("neg.py"))
    case = case_of_values("aten::neg", self=torch.arange(1.0, 201.0))
    with judging(tmp_path / "verdicts.sqlite") as judge:
        (verdict,) = judge.judge([Job(Plan("aten::neg", "aten::neg"), kernel, (case,))]).values()
    assert verdict.outcome is expected, verdict.detail
    assert expected is Outcome.PASS or "64 warps" in verdict.detail


def test_a_wrapper_that_refuses_a_call_is_not_blamed_for_operators_of_the_judge(tmp_path):
    kernel = Library(KERNELS).parse(
        SOURCE.replace("out = torch.empty_like(self)", 'raise RuntimeError("no such call")'), Path("neg.py")
    )
    case = case_of_values("aten::neg", self=torch.arange(1.0, 21.0))
    with judging(tmp_path / "verdicts.sqlite") as judge:
        (verdict,) = judge.judge([Job(Plan("aten::neg", "aten::neg"), kernel, (case,))]).values()
    assert (verdict.outcome, verdict.detail) == (Outcome.RUNTIME_ERROR, "RuntimeError: no such call")


@pytest.mark.parametrize("interpreted", [True, False])
def test_a_block_is_told_which_triton_compiles_it(interpreted):
    program = """
        import triton, triton.language
        from types import SimpleNamespace
        from verify.child.aiming import aim
        block = SimpleNamespace(TRITON="", TUNING_TARGET="")
        aim(block, "sm_90")
        print(block.TUNING_TARGET, block.TRITON == ".".join(triton.__version__.split(".")[:2]), block.TRITON == "")
    """
    environment = {**os.environ, "TRITON_INTERPRET": str(int(interpreted))}
    run = [sys.executable, "-c", textwrap.dedent(program)]
    told = subprocess.run(run, env=environment, capture_output=True, text=True, check=True, cwd=ROOT)
    assert told.stdout.split() == ["sm_90", str(not interpreted), str(interpreted)]
