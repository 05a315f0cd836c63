"""Kernels on all numbers of a kind, or all combinations, and what the judge does not compare: storage offsets."""

from __future__ import annotations

import itertools

import pytest
import torch
from shared import packaged

from verify.child.loading import load_wrappers

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
PARTS = (0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1.5, -2.0)


@pytest.fixture
def wrapper_of(tmp_path):
    """A function: the wrapper of the library's kernel of an overload."""
    return lambda overload: load_wrappers({"kernel": packaged().match(overload).kernel.source}, tmp_path)["kernel"]


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_floats_of_8_bits_are_rounded_as_by_aten(wrapper_of, dtype, half):
    convert = wrapper_of("aten::_to_copy")
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(half)
    assert torch.equal(convert(every, dtype=dtype).view(torch.uint8), every.to(dtype).view(torch.uint8))
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    found, want = convert(codes, dtype=half), codes.to(half)
    assert torch.equal(found.isnan(), want.isnan())
    assert torch.equal(found.view(torch.int16)[~want.isnan()], want.view(torch.int16)[~want.isnan()])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_complex_quotients_of_all_special_parts_are_those_of_aten(wrapper_of):
    parts = torch.tensor(list(itertools.product(PARTS, repeat=4)))
    x, y = (torch.view_as_complex(parts[:, k : k + 2].contiguous()) for k in (0, 2))
    found, want = (torch.view_as_real(t) for t in (wrapper_of("aten::div.Tensor")(x, y), x / y))
    assert torch.equal(found.isnan(), want.isnan())
    torch.testing.assert_close(found, want, equal_nan=True)
    assert torch.equal(found.signbit()[~want.isnan()], want.signbit()[~want.isnan()])


def test_a_tensor_that_is_scattered_into_keeps_its_storage_offset(wrapper_of):
    x, src = torch.arange(15.0)[3:], torch.ones(2)
    found = wrapper_of("aten::as_strided_scatter")(x, src, [2], [2], 3)
    want = torch.as_strided_scatter(x, src, (2,), (2,), 3)
    assert torch.equal(found, want) and found.storage_offset() == want.storage_offset() == 3
