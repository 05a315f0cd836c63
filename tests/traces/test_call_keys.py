"""Keys of calls: each field of the one table is part of every key that is made from it."""

import pytest
import torch
from shared import native_modules

from capture.keys import in_cpp
from traces.call_keys import TENSOR_FIELDS, cpp_fields, key_function, read_call, recorded_key
from traces.overloads import resolve

X = torch.ones(2, 3)
COMPLEX = torch.ones(2, 3, dtype=torch.complex64)
INDICES = torch.tensor([[0, 0], [1, 1]])
COO = torch.sparse_coo_tensor(INDICES, torch.ones(2), (2, 3), check_invariants=True)
DIFFERENT = {  # what makes two tensors that differ in one field and in no other
    "dtype": lambda: (X, X.to(torch.int32)),
    "layout": lambda: (X.to_sparse_csr(), X.to_sparse_csc()),
    "device": lambda: (X, X.to("meta")),
    "shape": lambda: (torch.ones(2, 3).expand(2, 3), torch.ones(5, 3)),
    "stride": lambda: (X, torch.ones(3, 2).t()),
    "BITS": lambda: (COMPLEX, COMPLEX.conj()),
    "is_coalesced": lambda: (COO, COO.coalesce()),
}
CLONE = resolve("aten::clone")


@pytest.fixture
def native():
    return in_cpp(native_modules())


def itself(key):
    return key


def test_every_field_has_a_pair():
    assert [any(name in field.python for name in DIFFERENT) for field in TENSOR_FIELDS] == [True] * len(DIFFERENT)


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta:UserWarning")
@pytest.mark.parametrize("field", DIFFERENT)
def test_tensors_that_differ_in_one_field_have_other_keys(native, field):
    one, other = DIFFERENT[field]()
    ways = (
        lambda t: read_call((t,), {}).kind,
        lambda t: recorded_key(None, (t,), {}),
        lambda t: recorded_key(CLONE, (t,), {}),
        key_function(CLONE, itself),
        native(CLONE, itself),
    )
    for key in ways:
        assert key(one) != key(other) and key(one) == key(one) and key(other) == key(other)


def test_the_header_has_a_line_for_each_field():
    lines = [line for line in cpp_fields().splitlines() if "words.insert" in line]
    assert len(lines) == len(TENSOR_FIELDS)
    assert all(field.cpp in line for field, line in zip(TENSOR_FIELDS, lines, strict=True))


CALLS = ((1, 2), {}), ((1,), {"x": 2}), ((), {"x": 1, "y": 2}), ((1, "x", 2), {}), ((1, None, "x", 2), {})


def test_positions_and_names_of_arguments_are_told_apart():
    keys = {recorded_key(None, *call) for call in CALLS}
    assert len(keys) == len(CALLS)


def test_what_has_nothing_but_a_type_in_its_key_is_not_exact():
    assert read_call((X, [1, 2.0], None, torch.float16), {}).exact
    assert not read_call((torch.Generator(),), {}).exact
    assert not read_call(([object()],), {}).exact
