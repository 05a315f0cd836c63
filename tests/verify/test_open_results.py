"""Results that PyTorch leaves open pass as it may give them, and no others."""

import pytest
import torch

from traces.values import pack
from verify.cases.case import case_of_values, reference
from verify.cases.oracle import stands
from verify.comparison.compare import compare

X = torch.tensor([3.0, 1, 2, 1])
NONE = torch.empty(0, dtype=torch.int64)


def compared(overload, arguments, *results):
    expected = reference(case_of_values(overload, **arguments))
    return compare(overload, expected, pack({**arguments, "return": tuple(results)}))


UNSORTED = {
    "in ATen's order": ([1.0, 2, 3], [2, 0, 1, 0], [2, 1, 1], True),
    "in another": ([3.0, 1, 2], [0, 1, 2, 1], [1, 2, 1], True),
    "named as in ATen's": ([3.0, 1, 2], [2, 0, 1, 0], [1, 2, 1], False),
    "counted as in ATen's": ([3.0, 1, 2], [0, 1, 2, 1], [2, 1, 1], False),
    "another element": ([3.0, 1, 4], [0, 1, 2, 1], [1, 2, 1], False),
    "out of range": ([3.0, 1, 2], [0, 1, 3, 1], [1, 2, 1], False),
    "one twice": ([3.0, 1, 1], [0, 1, 2, 1], [1, 2, 1], False),
}


@pytest.mark.parametrize("name", UNSORTED)
def test_distinct_elements_that_need_not_be_sorted(name):
    values, inverse, counts, is_right = UNSORTED[name]
    results = torch.tensor(values), torch.tensor(inverse), torch.tensor(counts)
    arguments = {"self": X, "sorted": False, "return_inverse": True, "return_counts": True}
    assert (compared("aten::_unique2", arguments, *results) is None) == is_right
    in_order = name == "in ATen's order"
    assert (compared("aten::_unique2", {**arguments, "sorted": True}, *results) is None) == in_order


def test_what_nobody_asked_for_may_be_empty():
    x = X.view(4, 1)
    values, inverse, counts = (
        torch.tensor([[1.0], [2], [3]]),
        torch.tensor([2, 0, 1, 0]),
        torch.tensor([2, 1, 1]),
    )
    asked = {"self": x, "dim": 0, "sorted": True, "return_inverse": False, "return_counts": False}
    assert compared("aten::unique_dim", asked, values, inverse, counts) is None
    assert compared("aten::unique_dim", asked, values, NONE, NONE) is None
    assert compared("aten::unique_dim", {**asked, "return_inverse": True}, values, NONE, NONE) is not None
    assert compared("aten::unique_dim", {**asked, "return_counts": True}, values, inverse, NONE) is not None
    assert compared("aten::unique_dim", asked, values, inverse + 1, counts) is not None


@pytest.mark.parametrize("dtype, is_right", [(torch.bool, True), (torch.float32, True), (torch.int64, False)])
def test_the_mask_of_nothing(dtype, is_right):
    nothing = torch.empty(0, 3)
    arguments = {"input": nothing, "p": 0.5, "train": True}
    assert (compared("aten::native_dropout", arguments, nothing.clone(), nothing.to(dtype)) is None) == is_right


def test_convolutions_of_no_channels_are_no_case():
    """ATen returns no channels, where the weight has four."""
    arguments = {"input": torch.empty(2, 0, 5), "weight": torch.empty(4, 0, 3), "bias": None, "groups": 1}
    arguments |= {"stride": [1], "padding": [0], "dilation": [1], "transposed": False, "output_padding": [0]}
    assert not stands("aten::convolution", arguments)
    arguments |= {"input": torch.ones(2, 1, 5), "weight": torch.ones(4, 1, 3)}
    assert stands("aten::convolution", arguments)
