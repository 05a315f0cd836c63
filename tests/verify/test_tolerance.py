"""Which row of the table an operator is judged by."""

import pytest
import torch

from traces import UserError, facts
from traces.overloads import base_name, resolve
from traces.values import pack
from verify import operators
from verify.cases.case import case_of_values, reference
from verify.cases.packed import contents
from verify.comparison.deviation import is_wrong
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
    assert len(names) > 500 and {base_name(resolve(name)).strip("_") for name in laxer} == LAXER
    reasons = facts.read(facts.FILE)["laxer"]["stems"].values()
    assert all(float(reason.partition(":")[0]) > 1 for reason in reasons)


def test_the_table_repeats_no_tag_of_aten():
    by_tag = {base_name(resolve(name)).strip("_") for name in tagged()}
    assert not operators._POINTWISE & by_tag and by_tag >= LAXER


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


def test_what_is_left_of_terms_that_cancel_may_be_as_far_off_as_atens_own_but_has_to_be_there():
    """Of two elements, what was normalized is 1 and -1 and the gradient of both 0, but for a rounding of the mean."""
    x = torch.tensor([[-8.478373527526855, -1.7658257484436035]])
    arguments = {
        "grad_out": torch.tensor([[0.5922847986221313, 0.9100277423858643]]),
        "input": x,
        "mean": torch.tensor([[-5.122099876403809]]),
        "rstd": torch.tensor([[0.29794934391975403]]),
        "weight": None,
        "N": 1,
        "C": 2,
        "HxW": 1,
        "group": 1,
        "output_mask": [True, False, False],
    }
    overload = "aten::native_group_norm_backward"
    expected = reference(case_of_values(overload, **arguments))
    exact, native = (contents(p, 4).double() for p in (expected.values, expected.native))
    size, atens = float(exact.abs().max()), float((native - exact).abs().max())
    assert size < 1e-7 and atens > 2**-6 * size

    def wrong(answer):
        packed = pack({**arguments, "return": (answer.float(), None, None)})
        return is_wrong(overload, expected, packed, 4)

    off = min(atens, 0.45 * size)
    assert not wrong(exact) and not wrong(native) and not wrong(exact + off) and not wrong(exact - off)
    for bad in (0 * exact, -exact, 2 * exact, exact.flip(-1), exact + 0.6 * size, exact + torch.nan):
        assert wrong(bad)
