"""Reductions of so many elements that programs count beyond what 32 bits hold. The elements share memory."""

from __future__ import annotations

import pytest
import torch
from shared import Launches, packaged

from verify.child.loading import load_wrappers


@pytest.mark.parametrize("n", [2**31 - 1, 2**31 - 70_000, 2**31 - 5_000_000, 2**30])
@pytest.mark.parametrize("overload", ["aten::amax", "aten::argmax"])
def test_columns_that_a_program_counts_to_fit_its_integers(tmp_path, overload, n):
    kernel = packaged().match(overload).kernel
    wrapper = load_wrappers({"kernel": kernel.source}, tmp_path)["kernel"]
    wrapper.__globals__["reduction_kernel"] = launches = Launches()
    wrapper(torch.zeros(1, dtype=torch.int8).expand(n))
    (_, parts), args, constants = launches.noted[0]
    steps = args[6] // 2 - 1  # as `plain` has it
    assert n <= parts * steps * constants["BLOCK_N"]
    counted = (parts * steps + 1) * constants["BLOCK_N"]  # one step more is asked for, and is not read
    assert constants["WIDE"] or counted < 2**31


@pytest.mark.parametrize(
    "overload, shape, arguments, place",
    [
        ("aten::var_mean.correction", (132, 2100), ([1],), 1),  # rows that programs hold whole
        ("aten::native_group_norm", (132, 1, 600), (None, None, 132, 1, 600, 1, 1e-5), 1),  # groups
    ],
)
def test_the_mean_of_large_elements_is_finite(tmp_path, overload, shape, arguments, place):
    wrapper = load_wrappers({"kernel": packaged().match(overload).kernel.source}, tmp_path)["kernel"]
    mean = wrapper(torch.full(shape, 3e38), *arguments)[place]
    assert torch.allclose(mean, torch.full_like(mean, 3e38), rtol=1e-5)
