"""The gradient of an embedding of a large vocabulary, whose tokens the library's kernel sorts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from corpus import replaced
from shared import packaged, sampled

from verify.cases.case import case_of_values
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

KERNELS = Path(__file__).parents[2] / "generate" / "kernels"
OVERLOAD = "aten::embedding_dense_backward"
WORDS = 3000  # of two digits
BITS = ("RADIX_BITS = 11", "RADIX_BITS = 4")
SORTS = ("MOST_COMPARISONS = 33554432", "MOST_COMPARISONS = 0")  # however small the vocabulary


def drawn(m, words=WORDS):
    """Few words are frequent and many are rare: the logarithm of an index is uniform."""
    return (words ** torch.rand(m, generator=torch.Generator().manual_seed(m))).long() - 1


def verdict_of(judge, indices, columns, changes=(SORTS,), dtype=torch.float32, layout=None, **arguments):
    """changes: what the library's kernel has, and what this one has instead."""
    match = packaged().match(OVERLOAD)
    kernel = KernelFile.parse(replaced(match.kernel.source, *changes), Path("changed.py"))
    grad = torch.randn(*indices.shape, columns, generator=torch.Generator().manual_seed(columns)).to(dtype)
    if layout == "transposed":
        grad, indices = grad.transpose(0, -1).contiguous().transpose(0, -1), indices.t().contiguous().t()
    given = {"num_weights": WORDS, "padding_idx": -1, "scale_grad_by_freq": False, **arguments}
    case = case_of_values(OVERLOAD, grad_output=grad, indices=indices, **given)
    return judge.judge([Job(match.plan, kernel, (case,), match.copy, repeats=1)])[OVERLOAD, case.id]


CALLS = {
    "frequent and rare": lambda: {"indices": drawn(300).view(3, 100), "columns": 5},
    "more columns than a block": lambda: {"indices": drawn(40), "columns": 130, "dtype": torch.bfloat16},
    "divided by how often": lambda: {"indices": drawn(300).int(), "columns": 3, "scale_grad_by_freq": True},
    "a run of many chunks": lambda: {"indices": torch.full((1100,), WORDS - 1), "columns": 2},
    "such a run, divided": lambda: {"indices": drawn(1100) // 1500, "columns": 2, "scale_grad_by_freq": True},
    "padding": lambda: {"indices": drawn(150) // 2, "columns": 3, "padding_idx": 0, "dtype": torch.float16},
    "transposed": lambda: {"indices": drawn(60).view(6, 10), "columns": 3, "layout": "transposed"},
    "three digits": lambda: {
        "indices": drawn(150),
        "columns": 1,
        "changes": (SORTS, BITS),
    },
    "one digit": lambda: {"indices": drawn(150, 50), "columns": 3, "num_weights": 50},
    "one word": lambda: {"indices": drawn(40, 1), "columns": 3, "num_weights": 1},
    "as the library has it": lambda: {
        "indices": drawn(90, 2**15 + 1),
        "columns": 1,
        "num_weights": 2**15 + 1,
        "changes": (),
    },
    "one token": lambda: {"indices": torch.tensor([WORDS - 1]), "columns": 4},
    "no token": lambda: {"indices": drawn(0), "columns": 4},
    "no column": lambda: {"indices": drawn(9), "columns": 0},
}


SWEPT = (
    "frequent and rare",
    "such a run, divided",
    "one token",
    "one word",
    "divided by how often",
    "one digit",
)  # much like others


@pytest.mark.parametrize("name", sampled(CALLS, [name for name in CALLS if name not in SWEPT]))
def test_sorted(judge, name):
    found = verdict_of(judge, **CALLS[name]())
    assert found.outcome is Outcome.PASS, found


FAULTS = {
    "never adds up pieces": ("if (word == after) &", "if (word < 0) &"),
    "64 pieces alone": ("more = tl.sum(same.to(tl.int32), 0) == CHUNKS", "more = chunk < 0"),
    "the run begins in every chunk": ("(word != before) & (word", "(word >= 0) & (word"),
    "blocks forget those before": ("(other_block < block)[:, None]", "(other_block < 0)[:, None]"),
    "ties in no order": ("(lanes[None, :] < lanes[:, None])", "(lanes[None, :] < 0)"),
    "one digit": ("range(passes)", "range(1)"),
    "zeroes nothing": ("digits_kernel[(blocks + (0 if k else triton.cdiv(n, 4096)),)]", "digits_kernel[(blocks,)]"),
}


@pytest.mark.parametrize("name", sampled(FAULTS, [*FAULTS][1::2]))
def test_faults(judge, name):
    indices = torch.cat([drawn(150), torch.full((1100,), 7)])
    assert verdict_of(judge, indices, 2, (SORTS, FAULTS[name])).outcome is not Outcome.PASS
