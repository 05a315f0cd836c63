"""In which precision products of float32 are compared."""

import pytest
import torch
import torch.testing._internal.common_utils  # from then on cuDNN's flags refuse to be set

from enable.serve import precision
from traces.overloads import resolve

CONVOLUTION, MM, ADD = map(resolve, ("aten::convolution", "aten::mm", "aten::add.Tensor"))
FLOATS = [torch.ones(1), torch.ones(1)]


@pytest.fixture(autouse=True)
def settings():
    before = precision.settings()
    yield before
    precision._set(before)


def test_products_are_in_full_inside_the_block_and_as_before_after_it(settings):
    assert precision.computed_in(CONVOLUTION, FLOATS) == {"tf32"}  # by PyTorch's default
    torch.set_float32_matmul_precision("high")
    with precision.in_full():
        for op in (CONVOLUTION, MM, ADD):
            assert precision.computed_in(op, FLOATS) == {"float32"}
        assert not torch.backends.cudnn.allow_tf32 and torch.get_float32_matmul_precision() == "highest"
    assert precision.computed_in(CONVOLUTION, FLOATS) == precision.computed_in(MM, FLOATS) == {"tf32"}


def test_a_setting_of_one_kind_alone_is_put_back():
    torch.backends.cudnn.rnn.fp32_precision = "ieee"
    before = precision.settings()
    with precision.in_full():
        assert "tf32" not in precision.settings().values()
    assert precision.settings()["conv"] == before["conv"] == "tf32" and precision.settings()["rnn"] == "ieee"


def test_other_dtypes_are_named_as_they_are():
    found = precision.computed_in(MM, [torch.ones(1, dtype=torch.bfloat16), torch.ones(1), torch.ones(1).long()])
    assert found == {"bfloat16", "float32"}
    assert precision.computed_in(ADD, FLOATS) == {"float32"}
