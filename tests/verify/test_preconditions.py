"""Cases keep what PyTorch's documentation demands and ATen does not check, whichever generator makes them."""

import pytest
import torch

from traces.values import unpack
from verify.cases.case import NoReference, case_of_values, reference
from verify.cases.extended import extended
from verify.cases.of_schema import schema_cases
from verify.cases.oracle import stands
from verify.cases.preconditions import PRECONDITIONS, broken, keeping
from verify.cases.samples import opinfo_cases

OVERLOADS = {
    "aten::bucketize.Tensor": "float32",
    "aten::searchsorted.Tensor": "float32",
    "aten::searchsorted.Scalar": "float32",
    "aten::histogram.bins_tensor": "float32",
    "aten::_histogramdd_from_bin_tensors": "float32",
    "aten::isin.Tensor_Tensor": "int64",
    "aten::bitwise_left_shift.Tensor": "int32",
    "aten::bitwise_right_shift.Tensor_Scalar": "int32",
    "aten::polar": "float32",
}


def test_each_precondition_says_where_it_stands():
    assert all(p.says and p.source.startswith("https://docs.pytorch.org/") for p in PRECONDITIONS)


@pytest.mark.parametrize("overload", OVERLOADS)
def test_every_generator_keeps_the_preconditions(overload):
    dtype = OVERLOADS[overload]
    samples = opinfo_cases([overload], (dtype,))
    made = [v.case for v in extended(samples, 1, "BLOCK = 32", 90)]
    made += [v.case for v in extended(samples[:1], 2, most=160)][-40:]  # with two changes
    made += schema_cases(overload, (getattr(torch, dtype),))
    assert samples and len(made) > 30
    for case in samples + made:
        assert broken(overload, unpack(case.load())) is None, (case.signature, unpack(case.load()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.int8])
@pytest.mark.parametrize("regime", ["drawn", "equal", "largest", "smallest", "special"])
def test_boundaries_increase_by_the_smallest_steps_where_they_were_equal(dtype, regime):
    ends = (torch.inf, -torch.inf) if dtype.is_floating_point else (torch.iinfo(dtype).max, torch.iinfo(dtype).min)
    special = torch.tensor([0.0, -0.0, ends[0], ends[1], torch.nan if dtype.is_floating_point else 3] * 4)
    given = {
        "drawn": torch.randn(20) * 9,
        "equal": torch.ones(20),
        "largest": torch.full((20,), ends[0], dtype=dtype),
        "smallest": torch.full((20,), ends[1], dtype=dtype),
        "special": special,
    }[regime].to(dtype)
    strided = torch.stack([given, given], 1)[:, 0]
    kept = keeping("aten::bucketize.Tensor", {"self": torch.randn(3), "boundaries": strided})
    boundaries = kept["boundaries"]
    assert boundaries.stride() == (2,) and bool((boundaries[1:] > boundaries[:-1]).all())
    if regime == "equal" and dtype is torch.float32:
        assert 1 < float(boundaries[-1]) < 1.00001


def test_what_keeps_its_preconditions_is_left_alone():
    arguments = {
        "sorted_sequence": torch.tensor([[3.0, 1, 2]]),
        "self": torch.ones(1, 2),
        "sorter": torch.tensor([[1, 2, 0]]),
    }
    assert keeping("aten::searchsorted.Tensor", arguments) is arguments
    wrong = {**arguments, "sorter": torch.tensor([[1, 1, 0]])}
    assert broken("aten::searchsorted.Tensor", wrong).argument == "sorter"
    assert keeping("aten::searchsorted.Tensor", wrong)["sorter"].tolist() == [[1, 2, 0]]


def test_a_recorded_call_that_breaks_one_is_not_compared():
    case = case_of_values("aten::bucketize.Tensor", self=torch.ones(2), boundaries=torch.tensor([2.0, 1.0]))
    with pytest.raises(NoReference, match="strictly increasing sequence, or the return value is undefined"):
        reference(case)


INTO_NOTHING = {
    "aten::index_add": {"source": torch.ones(2, 0)},
    "aten::index_copy": {"source": torch.ones(2, 0)},
    "aten::index_reduce": {"source": torch.ones(2, 0), "reduce": "prod"},
    "aten::index_fill.int_Scalar": {"value": 1.0},
}


@pytest.mark.parametrize("overload", INTO_NOTHING)
@pytest.mark.parametrize("size", [0, 2])
def test_indices_into_nothing_are_no_case(overload, size):
    """ATen returns before it looks at them; an honest kernel would write outside."""
    arguments = {"self": torch.ones(size, 0), "dim": 0, "index": torch.tensor([0, 1]), **INTO_NOTHING[overload]}
    assert stands(overload, arguments) == (size > 0)
