"""Rows that lie 2^31 elements apart, and calls that ATen refuses: a kernel touches what is the call's, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from corpus import replaced
from shared import packaged

from verify.cases.case import case_of_values
from verify.cases.refused import MOST, refused
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.outcome import Outcome

RECORDED = case_of_values("aten::exp", self=torch.randn(5, 40, generator=torch.Generator().manual_seed(0)))
ROWS = replace(RECORDED, id="5 rows", signature="5 rows")  # as of cases that are made
INDEX = torch.tensor([2, 0, 4, 1])
CHOSEN = case_of_values("aten::index_select", self=torch.arange(15.0).reshape(5, 3), dim=0, index=INDEX)
WIDE = "col.to(tl.int64) * step"
SOURCE = """
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("float32",)


@triton.jit
def kernel(x_ptr, out_ptr, cols, stride, step, stride_out, step_out, BLOCK: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + OFFSET + COLUMN, mask=col < cols)
    tl.store(out_ptr + row * stride_out + col * step_out, tl.exp(x), mask=col < cols)


def wrapper(self):
    x = self.reshape(1, -1) if self.dim() < 2 else self.flatten(1)
    out = torch.empty_like(self)
    kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), *out.stride(), BLOCK=64)
    return out
"""


def judged(judge, tmp_path, source, *cases, strict=True, repeats=1):
    path = tmp_path / "kernel.py"
    path.write_text(source)
    overload = cases[0].overload
    job = Job(Plan(overload, overload), KernelFile.read(path), cases, strict=strict, repeats=repeats)
    return list(judge.judge([job]).values())


@pytest.mark.parametrize(
    "offset, outcome",
    [
        ("row.to(tl.int64) * stride", Outcome.PASS),
        ("row * stride", Outcome.WRONG),
        ("(row * stride).to(tl.int32)", Outcome.WRONG),
    ],
)
def test_offsets_of_rows_that_lie_far_apart(judge, tmp_path, offset, outcome):
    (verdict,) = judged(judge, tmp_path, SOURCE.replace("OFFSET", offset).replace("COLUMN", WIDE), ROWS)
    assert verdict.outcome is outcome, verdict.report
    assert outcome is Outcome.PASS or "outside x_ptr" in verdict.detail, verdict.detail


@pytest.mark.parametrize("strict", [True, False], ids=["library", "bare"])
@pytest.mark.parametrize("column, outcome", [(WIDE, Outcome.PASS), ("col * step", Outcome.WRONG)], ids=["64", "32"])
def test_offsets_along_a_further_dimension(judge, tmp_path, column, outcome, strict):
    """They need 64 bits in a bare file, too, if it has tl.int64 anywhere."""
    source = SOURCE.replace("OFFSET", "row.to(tl.int64) * stride").replace("COLUMN", column)
    (verdict,) = judged(judge, tmp_path, source, ROWS, strict=strict)
    assert verdict.outcome is outcome, verdict.report
    assert outcome is Outcome.PASS or "first row to the last (dimension 1)" in verdict.detail, verdict.detail


def test_a_case_that_was_not_made_keeps_its_layout(judge, tmp_path):
    (verdict,) = judged(
        judge, tmp_path, SOURCE.replace("OFFSET", "row * stride").replace("COLUMN", "col * step"), RECORDED
    )
    assert verdict.outcome is Outcome.PASS, verdict.report


def test_a_bare_file_may_compute_offsets_in_the_type_of_its_strides(judge, tmp_path):
    """They are int64 where one of them is that large."""
    ordinary, cut = (
        SOURCE.replace("OFFSET", o).replace("COLUMN", "col * step")
        for o in ("row * stride", "(row * stride).to(tl.int32)")
    )
    (verdict,) = judged(judge, tmp_path, ordinary, ROWS, strict=False)
    assert verdict.outcome is Outcome.PASS, verdict.report
    (verdict,) = judged(judge, tmp_path, cut, ROWS, strict=False)
    assert (verdict.outcome, verdict.layer) == (Outcome.WRONG, "access")


def test_refused_calls_are_made_of_indices_sizes_and_dimensions():
    cases = refused([CHOSEN])
    assert 8 <= len({case.id for case in cases}) == len(cases) <= MOST
    told = " ".join(case.signature for case in cases)
    assert "5 in index" in told and "self.0 = 2" in told and "dim = 3" in told
    assert all("out of" in case.refused or "Dimension" in case.refused for case in cases), [c.refused for c in cases]
    assert refused([]) == [] and refused([ROWS]) == []


@pytest.mark.parametrize(
    "old, new",
    [("", ""), ("mask=mask & valid, other=0", "mask=mask, other=0"), ("valid &= (index >= 0) &", "valid &=")],
    ids=["as it is", "any index", "negative ones"],
)
def test_reading_past_the_end_where_aten_refuses_is_wrong(judge, old, new):
    match = packaged().match("aten::index_select")
    kernel = replace(match.kernel, written=replaced(match.kernel.source, *([(old, new)] if old else [])))
    cases = (CHOSEN, *refused([CHOSEN]))
    plain, *others = judge.judge([Job(match.plan, kernel, cases)]).values()
    assert plain.outcome is Outcome.PASS, plain.report
    wrong = [v for v in others if v.outcome is Outcome.WRONG]
    assert bool(wrong) is bool(old) and all(v.layer == "access" for v in wrong)
    assert all("a call that ATen refuses (" in v.detail and "outside source_ptr" in v.detail for v in wrong)
    assert all(v.report.startswith("a call that ATen refuses (") for v in wrong)
    assert {v.outcome for v in others} <= {Outcome.WRONG, Outcome.SKIPPED}
    assert all("ATen refuses it: " in v.detail for v in others if v.outcome is Outcome.SKIPPED)
