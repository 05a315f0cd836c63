"""A wrapper is called as it was written: like PyTorch's function, or like the operator's schema."""

import pytest
import torch
import torch.nn.functional as F

from traces.overloads import bind, resolve
from traces.values import unpack
from verify.cases.samples import opinfo_cases, overloads_of
from verify.contract.calling import call


def called(overload, wrapper, **given):
    return call(overload, wrapper, bind(resolve(overload), (), given))


def everything(parameters):
    """A wrapper with these parameters that returns what it is given."""
    names = [p.partition("=")[0].strip() for p in parameters.split(",") if p.strip() not in ("*", "")]
    scope = {}
    exec(f"def wrapper({parameters}): return dict({', '.join(f'{n}={n}' for n in names)})", scope)  # noqa: S102
    return scope["wrapper"]


W, I, B = torch.randn(5, 3), torch.tensor([1, 4]), torch.randn(3)  # noqa: E741


@pytest.mark.parametrize(
    "parameters", ["input, weight", "weight, indices", "indices, weight, padding_idx=-1", "x, weight"]
)
def test_by_name_whatever_the_order(parameters):
    got = called("aten::embedding", everything(parameters), weight=W, indices=I)
    assert got["weight"] is W and got.get("indices", got.get("input", got.get("x"))) is I
    assert got.get("padding_idx", -1) == -1


def test_names_that_say_nothing_are_called_as_the_function_is():
    got = called("aten::embedding", everything("ids, table, *, out=None"), weight=W, indices=I)
    assert got["ids"] is I and got["table"] is W


def test_arguments_that_both_have_in_another_order():
    """torch.where(condition, input, other) is aten::where(condition, self, other)."""
    condition, x, y = W > 0, W, -W
    for parameters in ("condition, input, other", "input, condition, other", "a, b, c"):
        got = list(called("aten::where.self", everything(parameters), condition=condition, self=x, other=y).values())
        assert {id(value) for value in got} == {id(condition), id(x), id(y)}
    assert got[0] is condition and got[1] is x


LOSS = {"self": W, "target": W}


@pytest.mark.parametrize(
    "parameters, reduction, got",
    [
        ('input, target, size_average=None, reduce=None, reduction="mean"', 2, "sum"),
        ('input, target, reduction="mean"', 1, "mean"),
        ("input, target, reduction", 0, "none"),  # as the function has it, whose reduction is a word
        ("self, target, reduction=1", 2, 2),
        ("a, b, size_average=None, reduce=None, reduction='mean'", 2, "sum"),
    ],
)
def test_reduction_is_a_word_for_a_wrapper_that_takes_words(parameters, reduction, got):
    assert called("aten::mse_loss", everything(parameters), **LOSS, reduction=reduction)["reduction"] == got


def test_a_reduction_that_is_no_argument_of_a_python_function_stays_a_number():
    assert (
        called(
            "aten::_ctc_loss",
            everything("log_probs, targets, input_lengths, target_lengths, blank"),
            log_probs=W,
            targets=I,
            input_lengths=[1],
            target_lengths=[1],
        )["blank"]
        == 0
    )


def test_what_is_not_given_is_left_to_the_wrapper():
    wrapper = everything(
        "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False"
    )
    got = called("aten::max_pool2d", wrapper, self=W, kernel_size=[2, 2])
    assert got["stride"] is None and got["kernel_size"] == [2, 2] and got["return_indices"] is False
    factory = everything("n, m=None, *, out=None, dtype=None, layout=7, device=None")
    assert called("aten::eye", factory, n=3)["layout"] == 7


def test_an_argument_that_the_wrapper_does_not_take():
    """At its default it is left out; otherwise the call fails, whichever way it is made."""
    assert called("aten::add.Tensor", everything("input, other"), self=W, other=W)["other"] is W
    assert called("aten::layer_norm", everything("x, normalized_shape, weight, bias"), input=W, normalized_shape=[3])
    with pytest.raises(TypeError, match="alpha"):
        called("aten::add.Tensor", everything("input, other"), self=W, other=W, alpha=2)


def test_a_hint_that_no_answer_depends_on_is_not_insisted_on():
    wrapper = everything(
        "input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5"
    )
    given = {"running_mean": B, "running_var": B, "training": True, "momentum": 0.2, "eps": 1e-3, "cudnn_enabled": True}
    got = called("aten::batch_norm", wrapper, input=W, weight=None, bias=B, **given)
    assert got["bias"] is B and got["weight"] is None and (got["training"], got["momentum"]) == (True, 0.2)


def test_two_overloads_in_one_wrapper_go_by_position():
    wrapper = everything("input, dim=None, keepdim=False")
    assert called("aten::max.other", wrapper, self=W, other=-W)["dim"] is not None
    assert called("aten::max.dim", wrapper, self=W, dim=1, keepdim=True)["keepdim"] is True


def test_var_positional_and_schema_order():
    assert called("aten::expand", lambda input, *sizes: sizes, self=B, size=[2, 3]) == ([2, 3],)
    assert called("aten::mm", lambda a, b: (a, b), self=W, mat2=B) == (W, B)


FUNCTIONS = [
    "layer_norm",
    "group_norm",
    "batch_norm",
    "embedding",
    "mse_loss",
    "nll_loss",
    "cross_entropy",
    "kl_div",
    "l1_loss",
    "smooth_l1_loss",
    "pad",
    "grid_sample",
    "poisson_nll_loss",
]


@pytest.mark.filterwarnings("ignore:reduction")  # kl_div's, on "mean"
@pytest.mark.parametrize("name", FUNCTIONS)
def test_pytorchs_own_functions_are_called_so_that_they_answer_as_aten_does(name):
    cases = opinfo_cases(overloads_of(f"nn.functional.{name}"), ("float32",))[:25]
    assert cases
    for case in cases:
        values, other = unpack(case.load()), unpack(case.load())
        op = resolve(case.overload)
        expected = op(
            *[values[a.name] for a in op._schema.arguments if not a.kwarg_only],
            **{a.name: values[a.name] for a in op._schema.arguments if a.kwarg_only},
        )
        torch.testing.assert_close(call(case.overload, getattr(F, name), other), expected, equal_nan=True)
