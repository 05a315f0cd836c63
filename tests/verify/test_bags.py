"""Sums of bags of embeddings: what they are judged by where ATen computes those of float64 in another way."""

import pytest
import torch

from verify.cases.bags import changed_by_strides, ends_early
from verify.cases.case import case_of_values, reference
from verify.cases.packed import contents, tensor_names

OVERLOAD = "aten::_embedding_bag"


def bags(dtype, last=True, weights=None, padding=-1):
    return case_of_values(
        OVERLOAD,
        weight=torch.randn(9, 4, generator=torch.Generator().manual_seed(0)).to(dtype),
        indices=torch.tensor([0, 3, 3, 8, 1, 7, 2]),
        offsets=torch.tensor([0, 2, 4]),
        scale_grad_by_freq=False,
        mode=0,
        sparse=False,
        per_sample_weights=weights,
        include_last_offset=last,
        padding_idx=padding,
    )


def values_of(case, name):
    expected = reference(case)
    return contents(expected.values, tensor_names(expected.values.tree).index(name))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_reference_ends_where_the_case_does(weighted):
    """Items 4 to 6 lie behind the last offset."""
    weights = torch.rand(7).to(torch.bfloat16) if weighted else None
    case = bags(torch.bfloat16, weights=weights)
    table, given = values_of(case, "weight"), torch.ones(7, 1) if weights is None else weights[:, None]
    items = table[torch.tensor([0, 3, 3, 8])] * given[:4].double()
    found = values_of(case, "return[0]")
    assert found.dtype is torch.float64
    torch.testing.assert_close(found, torch.stack([items[:2].sum(0), items[2:].sum(0)]), rtol=1e-12, atol=0)
    assert values_of(case, "indices").tolist() == [0, 3, 3, 8, 1, 7, 2]


@pytest.mark.parametrize(
    ("case", "early"),
    [
        (bags(torch.float32), True),
        (bags(torch.float32, last=False), False),
        (bags(torch.float64), False),
        (bags(torch.float32, padding=3), False),
    ],
)
def test_which_calls_end_early(case, early):
    assert ends_early(OVERLOAD, case.load()) is early


def test_strides_of_weights_have_bags_recorded():
    assert changed_by_strides(OVERLOAD, bags(torch.float32, weights=torch.rand(7)).load())
    assert not changed_by_strides(OVERLOAD, bags(torch.float32).load())
    assert not changed_by_strides(OVERLOAD, bags(torch.float64, weights=torch.rand(7, dtype=torch.float64)).load())
    assert not changed_by_strides("aten::exp", case_of_values("aten::exp", self=torch.rand(3)).load())
