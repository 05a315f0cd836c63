"""Which row of the table an operator is judged by."""

import pytest
import torch

from traces import UserError
from traces.overloads import base_name, resolve
from verify import operators
from verify.comparison.tolerance import tolerance
from verify.operators import LAXER, group


def tagged():
    """Every overload that ATen calls pointwise."""
    for name in torch._C._dispatch_get_all_op_names():
        try:
            op = resolve(name)
        except UserError:
            continue
        if name.startswith("aten::") and torch.Tag.pointwise in op.tags:
            yield name


def test_what_aten_calls_pointwise_is_judged_so_or_there_is_a_reason():
    names = list(tagged())
    laxer = {name for name in names if group(name) == "accumulate"}
    assert len(names) > 500 and {base_name(resolve(name)).strip("_") for name in laxer} == LAXER.keys()
    assert all(float(reason.partition(":")[0]) > 1 for reason in LAXER.values())


def test_the_table_says_nothing_twice_and_names_operators():
    names = {n.removeprefix("aten::").partition(".")[0].strip("_") for n in torch._C._dispatch_get_all_op_names()}
    stems = {n.removesuffix("_backward") for n in names}
    by_tag = {base_name(resolve(name)).strip("_") for name in tagged()}
    assert operators._EXACT | operators._POINTWISE | operators._COPIES | operators._SUMS | LAXER.keys() <= stems
    assert not operators._POINTWISE & by_tag and LAXER.keys() <= by_tag
    assert operators._COPIES <= operators._EXACT and not operators._EXACT & (LAXER.keys() | operators._POINTWISE)


@pytest.mark.parametrize(
    "overload, row",
    [
        ("aten::erf", "pointwise"),
        ("aten::erf_", "pointwise"),
        ("aten::erf.out", "pointwise"),
        ("aten::_foreach_erf", "pointwise"),
        ("aten::_foreach_erf_", "pointwise"),
        ("aten::_fused_adamw_", "pointwise"),
        ("aten::sinc", "accumulate"),
        ("aten::max.dim", "exact"),
        ("aten::sum", "accumulate"),
        ("aten::_softmax", "accumulate"),
    ],
)
def test_rows(overload, row):
    assert group(overload) == row
    assert tolerance(overload, torch.int64).rtol == 0


def test_a_relative_error_that_sums_may_have_is_too_much_for_a_pointwise_operator():
    error = 2.0**-19
    assert tolerance("aten::sum", torch.float32).rtol > error > tolerance("aten::erf", torch.float32).rtol
