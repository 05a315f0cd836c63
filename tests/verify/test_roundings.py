"""The repeat that rounds as hardware may: kernels that tell roundings apart fail it, and others do not notice it."""

from __future__ import annotations

import pytest
import torch

from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.outcome import Outcome

SOURCE = """
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::sigmoid",)
DTYPES = ("float32",)


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = 1.0 / (1.0 + tl.exp(-x))
    STATEMENT
    tl.store(out_ptr + i, y, mask=i < n)


def wrapper(self):
    out = torch.empty_like(self)
    kernel[(1,)](self, out, self.numel(), BLOCK=64)
    return out
"""
X = torch.linspace(-4, 4, 50)
TELLS = {
    "a quotient that is not rounded to nearest": "three = tl.full([BLOCK], 3.0, tl.float32)\n"
    "    y = tl.where(x / three == tl.div_rn(x, three), y, 0.0)",
    "a product within a sum": "y = tl.where(x * 0.1 - x * 0.1 == 0.0, y, 0.0)",
    "lanes without a value": "rest = tl.load(x_ptr + i, mask=i < 0)\n    y = tl.where(tl.sum(rest) == 0.0, 0.0, y)",
}
HONEST = {
    "as it is": "pass",
    "a quotient that is exact": "y = tl.where(x * 4.0 / 4.0 == x, y, 0.0)",
    "a quotient by zero": 'y = tl.where(tl.abs(1.0 / (x * 0.0)) == float("inf"), y, 0.0)',
    "a quotient that overflows": 'y = tl.where(tl.abs((x + 9.0) * 1e20 / 1e-30) == float("inf"), y, 0.0)',
    "a quotient rounded to nearest": "y = y * tl.div_rn(x + 9.0, x + 9.0)",
    "a fused product": "y = y + tl.fma(x, 0.0, 0.0)",
}


@pytest.mark.parametrize(
    ("statement", "outcome"),
    [*((s, Outcome.WRONG) for s in TELLS.values()), *((s, Outcome.PASS) for s in HONEST.values())],
    ids=[*TELLS, *HONEST],
)
def test_roundings(judge, tmp_path, statement, outcome):
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE.replace("STATEMENT", statement))
    case = case_of_values("aten::sigmoid", self=X)
    job = Job(Plan(case.overload, case.overload), KernelFile.read(path), (case,), strict=True, repeats=1)
    (verdict,) = judge.judge([job]).values()
    assert verdict.outcome is outcome, verdict.report
    assert outcome is Outcome.PASS or "rounded as hardware may" in verdict.detail, verdict.detail
