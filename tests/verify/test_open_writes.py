"""Where several elements are written to one, any of them may stay there, and nothing else."""

from pathlib import Path

import pytest
import torch

from traces.overloads import resolve
from traces.values import pack
from verify.cases.case import case_of_values, reference
from verify.comparison.compare import compare
from verify.comparison.open_writes import leaves_open
from verify.contract.derive import Plan
from verify.judging.candidate import read_candidate
from verify.judging.judge import Job
from verify.lint import load_profile
from verify.outcome import Outcome

X, S, TWICE = torch.tensor([0.0, 1, 2]), torch.tensor([10.0, 20, 30]), torch.tensor([0, 0, 2])
CALLS = {
    "aten::scatter.src": {"self": X, "dim": 0, "index": TWICE, "src": S},
    "aten::scatter_.src": {"self": X, "dim": -1, "index": TWICE, "src": S},
    "aten::index_copy": {"self": X, "dim": 0, "index": TWICE, "source": S},
    "aten::index_put": {"self": X, "indices": [TWICE], "values": S},
    "aten::_index_put_impl_": {"self": X, "indices": [TWICE - 3], "values": S},
    "aten::put": {"self": X, "index": TWICE - 3, "source": S},
    "aten::max_unpool2d": {"self": S.view(1, 1, 3), "indices": TWICE.view(1, 1, 3), "output_size": [1, 3]},
}
RIGHT = [10.0, 1.0, 30.0], [20.0, 1.0, 30.0]
WRONG = [0.0, 1, 30], [30.0, 1, 30], [10.0, 1, 20], [10.0, 10, 30], [torch.nan, 1, 30], [15.0, 1, 30], [20.0, 1, 2]


def judged(overload, answer, **changes):
    arguments = {**CALLS[overload], **changes}
    expected = reference(case_of_values(overload, **arguments))
    result = torch.tensor(answer)
    if "unpool" in overload:
        result = torch.where(result == 1, 0.0, result).view(1, 1, 3)  # of what nothing is written to
    arguments["self"] = result if resolve(overload)._schema.is_mutable else arguments["self"]
    return expected, compare(overload, expected, pack({**arguments, "return": result}))


@pytest.mark.parametrize("overload", CALLS)
def test_any_of_the_elements_that_are_written_may_stay_and_nothing_else(overload):
    for answer in RIGHT:
        expected, found = judged(overload, answer)
        assert leaves_open(expected) and found is None, found
    for answer in WRONG:
        assert judged(overload, answer)[1] is not None, answer


@pytest.mark.parametrize("overload", ["aten::index_put", "aten::put"])
def test_sums_are_not_open(overload):
    expected, found = judged(overload, [20.0, 1, 30], accumulate=True)
    assert not leaves_open(expected) and found is not None


def test_nothing_is_written_to_a_result_without_elements():
    sizes = {"self": torch.zeros(1, 2, 3), "indices": torch.zeros(1, 2, 3, dtype=torch.int64), "output_size": [0, 4]}
    assert not leaves_open(reference(case_of_values("aten::max_unpool2d", **sizes)))


def test_part_of_a_source_along_a_dimension():
    """Elements of the source beyond the index are written nowhere."""
    index, source = torch.tensor([[1, 1], [0, 0]]), torch.arange(12.0).view(3, 4)
    arguments = {"self": torch.full((2, 3), -1.0), "dim": 1, "index": index, "src": source}
    expected = reference(case_of_values("aten::scatter.src", **arguments))
    for stays, is_right in (([0, 5], True), ([1, 4], True), ([2, 4], False), ([1, 6], False), ([1, 0], False)):
        answer = torch.tensor([[-1.0, stays[0], -1], [stays[1], -1, -1]])
        found = compare("aten::scatter.src", expected, pack({**arguments, "return": answer}))
        assert (found is None) == is_right


SCATTER = """
import torch
import triton
import triton.language as tl

@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def kernel(x, index, src, y, n, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {first}
    at = tl.load(index + i, mask=i < m, other=0)
    value = tl.load(src + i, mask=i < m, other=0)
    {store}

def wrapper(self, dim, index, src):
    out = torch.empty_like(self)
    n, m = self.numel(), index.numel()
    {copied}
    kernel[(triton.cdiv(max(n, m), 16),)](self, index, src, out, n, m, BLOCK=16)
    return out
"""
COPIED = "copy[(triton.cdiv(n, 16),)](self, out, n, BLOCK=16)"
KERNELS = {
    "in parallel": ("pass", "tl.store(y + at, value, mask=i < m)", COPIED, None),
    "a value of none": ("pass", "tl.store(y + at, value + 0.5 * (i % 2), mask=i < m)", COPIED, "compare"),
    "a sum": ("pass", "tl.atomic_add(y + at, value, mask=i < m)", COPIED, "compare"),
    "beside its copy": (
        "tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)",
        "tl.store(y + at, value, mask=i < m)",
        "pass",
        "compare",
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_scatter_all_at_once(judge, name):
    first, store, copied, layer = KERNELS[name]
    text = SCATTER.format(first=first, store=store, copied=copied)
    kernel = read_candidate(text, Path("scatter.py"), load_profile("triton-cuda"), "aten::scatter.src").kernel
    generator = torch.Generator().manual_seed(0)
    indices = torch.randint(40, (40,), generator=generator), torch.randperm(40, generator=generator)
    x, src = torch.randn(40, generator=generator), torch.randn(40, generator=generator)
    cases = tuple(case_of_values("aten::scatter.src", self=x, dim=0, index=index, src=src) for index in indices)
    plan = Plan("aten::scatter.src", "aten::scatter.src")
    verdicts = list(judge.judge([Job(plan, kernel, cases, repeats=2)]).values())
    if layer is None:
        assert all(v.outcome is Outcome.PASS for v in verdicts), verdicts
    else:
        assert any((v.outcome, v.layer) == (Outcome.WRONG, layer) for v in verdicts), verdicts
