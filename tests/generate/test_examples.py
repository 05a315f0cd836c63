"""The three kernel files that every prompt shows: judged like any kernel, on shapes, strides and special values."""

from itertools import product
from pathlib import Path

import pytest
import torch

from generate import BLOCKS
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

EXAMPLES = Path(__file__).parents[2] / "generate" / "examples"
DTYPES = (torch.float32, torch.bfloat16, torch.int64)
T = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0)) * 3
STRIDED = (T, T.permute(2, 0, 1), T[:, ::2], T[0, 0, 0], T[:0], T[0, :, :1].expand(5, 4), T.repeat(36, 1, 1).flatten())
MATRICES = (T[0], T[0].t(), T[0, :, 0], T[0, :, 0][::2], T[0, :0, 0], T[0, :1], T.repeat(2, 1, 1).flatten()[:40])
NAN, INF = float("nan"), float("inf")
SPECIAL = torch.tensor([[1, NAN, 3, NAN], [5.0, 5, 2, 5], [-INF, -INF, -INF, -INF]])


def exp_cases():
    return [case_of_values("aten::exp", self=x.to(d)) for d, x in product(DTYPES, (*STRIDED, SPECIAL))]


def argmax_cases():
    for x in (*STRIDED, STRIDED[0].long(), SPECIAL):
        for dim, keepdim in product((None, *range(-1, x.dim())), (False, True)):
            if x.numel() and (dim is None or not x.dim() or x.size(dim)):
                yield case_of_values("aten::argmax", self=x, dim=dim, keepdim=keepdim)


def diag_cases():
    for dtype, x, diagonal in product(DTYPES, MATRICES, (-9, -1, 0, 2)):
        if x.dim() == 1 or -x.size(0) <= diagonal <= x.size(1):
            yield case_of_values("aten::diag", self=x.to(dtype), diagonal=diagonal)


CASES = {"exp": exp_cases, "argmax": argmax_cases, "diag": diag_cases}


@pytest.mark.parametrize("name", CASES)
def test_example_is_right(name, judge):
    kernel = KernelFile.read(EXAMPLES / f"{name}.py", (BLOCKS,))
    job = Job(Plan(f"aten::{name}", f"aten::{name}"), kernel, tuple(CASES[name]()))
    verdicts = judge.judge([job])
    assert len(verdicts) > 20
    assert not [v for v in verdicts.values() if v.outcome is not Outcome.PASS]
