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


LARGE = torch.tensor(3e38)


def test_large_elements_of_a_row_that_are_alike_are_not_apart(tmp_path):
    kernel = packaged().match("aten::var_mean.correction").kernel
    launch = load_wrappers({"kernel": kernel.source}, tmp_path)["kernel"].__globals__["launch_whole_rows"]
    mean, squares, count = held = [torch.empty(1) for _ in range(3)]
    launch("welford", None, LARGE.expand(2100).contiguous(), held, (), (1, 2100, 2100), ((), (0,)), torch.float32)
    assert (mean, squares, count) == (LARGE, 0, 2100)


def test_large_elements_of_a_group_that_are_alike_are_not_apart(tmp_path):
    kernel = packaged().match("aten::native_group_norm").kernel
    wrapper = load_wrappers({"kernel": kernel.source}, tmp_path)["kernel"]
    out, mean, rstd = wrapper(LARGE.expand(132, 1, 600).contiguous(), None, None, 132, 1, 600, 1, 0.25)
    assert (out == 0).all() and (mean == LARGE).all() and (rstd == 2).all()
