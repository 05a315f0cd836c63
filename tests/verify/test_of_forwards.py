"""Cases of operators that take what a forward left."""

from __future__ import annotations

import pytest
import torch

from traces.values import unpack
from verify.cases.case import reference
from verify.cases.of_forwards import linked_cases
from verify.cases.samples import opinfo_cases

ATTENTION = ("flash_attention_for_cpu", "flash_attention", "cudnn_attention", "efficient_attention")
OTHERS = ("_embedding_bag_forward_only", "_embedding_bag_dense_backward", "_embedding_bag_per_sample_weights_backward")
OTHERS += ("_weight_norm_interface_backward",)
OVERLOADS = (
    *(f"aten::_scaled_dot_product_{name}_backward" for name in ATTENTION),
    *(f"aten::{name}" for name in (*OTHERS, "_amp_update_scale_", "_coalesce", "_to_dense")),
)


@pytest.mark.parametrize("overload", OVERLOADS)
def test_every_one_has_cases_that_have_a_reference(overload: str) -> None:
    cases = linked_cases(overload, [torch.float32])

    assert len(cases) >= 3
    assert all(reference(case).values.data for case in cases)


def test_a_gradient_of_attention_takes_what_the_forward_left() -> None:
    case = linked_cases("aten::_scaled_dot_product_flash_attention_for_cpu_backward", [torch.float64])[0]

    given = unpack(case.load())
    scores = given["query"] @ given["key"].transpose(-1, -2) * given["query"].shape[-1] ** -0.5

    torch.testing.assert_close(given["logsumexp"], scores.logsumexp(-1).to(given["logsumexp"].dtype))
    torch.testing.assert_close(given["out"], scores.softmax(-1) @ given["value"])


def test_no_other_operator_has_any() -> None:
    assert linked_cases("aten::exp", [torch.float32]) == []


def test_they_stand_for_samples_where_opinfo_has_none() -> None:
    overload = "aten::_amp_update_scale_"

    assert {case.overload for case in opinfo_cases([overload], ("float32",))} == {overload}
