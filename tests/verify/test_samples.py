"""Cases from OpInfo, cases made from these, and whether they tell wrong answers from right ones."""

import functools
import math
from dataclasses import replace

import pytest
import torch
from shared import sampled

from traces import UserError
from traces.subgraphs import Subgraph, SubgraphCall, SubgraphInput
from traces.values import unpack
from verify.cases import opinfo
from verify.cases.case import NoReference, case_of_values, reference
from verify.cases.extended import extended, literals
from verify.cases.of_schema import schema_cases
from verify.cases.opinfo import kept_cases
from verify.cases.oracle import stands
from verify.cases.samples import opinfo_cases, overloads_of, within
from verify.cases.scalars import scalars
from verify.comparison.mutants import try_mutants


@functools.cache
def pools():
    """OpInfo has hundreds."""
    return opinfo_cases(["aten::max_pool2d"], ("float32",))


def shapes(variants, name="self"):
    return [tuple(unpack(v.case.load())[name].shape) for v in variants]


def test_an_operator_by_any_of_its_names():
    assert overloads_of("aten::exp") == ["aten::exp"]
    assert overloads_of("exp") == ["aten::exp"]
    assert overloads_of("nn.functional.gelu") == ["aten::gelu"]
    assert overloads_of("linalg.inv") == ["aten::linalg_inv"]
    assert set(overloads_of("sum")) >= {"aten::sum", "aten::sum.dim_IntList"}
    with pytest.raises(UserError, match="unknown operator 'expp'; did you mean exp"):
        overloads_of("expp")


def test_samples_reach_the_overload_that_takes_them():
    cases = opinfo_cases(overloads_of("sum"), ("float32",))
    assert {case.overload for case in cases} == {"aten::sum", "aten::sum.dim_IntList"}
    assert len({case.id for case in cases}) == len(cases) > 20
    kinds = {
        unpack(c.load())["self"].dtype for c in opinfo_cases(["aten::exp"], ("bfloat16", "bool", "int32", "int64"))
    }
    assert kinds == {torch.bfloat16, torch.bool, torch.int32, torch.int64}


def test_a_tensor_is_no_dimension():
    """Of max, which takes another tensor in the place of the dimension: PyTorch then calls another overload."""
    cases = opinfo_cases(["aten::max.dim"], ("float32", "bfloat16"))
    assert cases and all(type(unpack(c.load())["dim"]) is int for c in cases)


def test_samples_whose_arguments_come_in_another_order():
    """OpInfo's `where` takes the condition second."""
    cases = [c for c in opinfo_cases(overloads_of("where"), ("float32",)) if c.overload == "aten::where.self"]
    assert len(cases) > 3
    for case in cases:
        arguments = unpack(case.load())
        assert arguments["condition"].dtype is torch.bool and arguments["self"].dtype is torch.float32


@pytest.mark.parametrize(
    "operator, overload",
    [
        ("nn.functional.nll_loss", "aten::nll_loss_nd"),
        ("nn.functional.cross_entropy", "aten::cross_entropy_loss"),
        ("nn.functional.logsigmoid", "aten::log_sigmoid"),
        ("nn.functional.unfold", "aten::im2col"),
        ("nn.functional.batch_norm", "aten::batch_norm"),
        ("nn.functional.max_pool2d", "aten::max_pool2d"),
        ("torch.nn.functional.kl_div", "aten::kl_div"),
        ("special.bessel_j0", "aten::special_bessel_j0"),
    ],
)
def test_operators_that_are_called_otherwise_or_made_of_others(operator, overload):
    """Also those that call others in turn, which a dispatch mode does not see."""
    assert overloads_of(operator) == [overload]
    cases = pools() if overload == "aten::max_pool2d" else opinfo_cases([overload], ("float32",))
    assert cases and {case.overload for case in cases} == {overload}


@pytest.mark.parametrize("operator", ["unique", "nn.functional.softsign", "nn.functional.interpolate", "bool"])
def test_what_is_no_single_operator_is_not_judged_as_one(operator):
    with pytest.raises(UserError, match="no single ATen operator: PyTorch calls aten::"):
        overloads_of(operator)


def test_operators_that_take_no_tensors():
    assert {c.overload for c in opinfo_cases(overloads_of("eye"), ("float32",))} == {"aten::eye", "aten::eye.m"}


CREATED = ["arange", "full", "ones", "linspace", "tril_indices", "scalar_tensor"]


@pytest.mark.parametrize("operator", sampled(CREATED, ["full", "tril_indices", "scalar_tensor"]))
def test_operators_that_create(operator):
    cases = opinfo_cases(overloads_of(operator), ("float32", "int64"))
    assert cases and any(c.overload == f"aten::{operator}" for c in cases)


def test_a_device_is_one_for_which_another_may_stand_in():
    cases = opinfo_cases(["aten::arange.start_step"], ("float32", "bfloat16"))
    assert cases and all(case.load().tree["device"] == {"device": "cpu"} for case in cases)


def test_numbers_become_lists_of_the_length_that_the_schema_has():
    assert {len(unpack(c.load())["kernel_size"]) for c in pools()} == {2}


def test_numbers_of_a_source_that_may_be_block_sizes():
    assert literals("BLOCK = 64\nx = 1 << 20 if True else 0\ny = 4096 * 5.0\n") == [5, 20, 64, 4096][1:]
    assert literals("def (") == []


def test_sizes_go_past_the_blocks_of_the_source():
    case = case_of_values("aten::exp", self=torch.randn(20))
    found = shapes(extended([case], 1, "BLOCK = 64"))
    assert {(0,), (1,), (63,), (64,), (65,), (129,), (131,)} <= set(found)


def test_sizes_that_belong_together_change_together():
    case = case_of_values("aten::mm", self=torch.randn(4, 6), mat2=torch.randn(6, 5))
    for variant in extended([case], 1):
        arguments = unpack(variant.case.load())
        assert arguments["self"].shape[1] == arguments["mat2"].shape[0]
    assert (4, 131) in shapes(extended([case], 1))


def test_layouts():
    case = case_of_values("aten::gelu", self=torch.randn(6, 10), approximate="none")
    strides = {v.how: unpack(v.case.load())["self"].stride() for v in extended([case], 1) if "arguments" in v.how}
    assert strides == {
        "transposed arguments": (1, 6),
        "strided arguments": (20, 2),
        "offset arguments": (10, 1),
        "expanded arguments": (0, 1),
        "arguments expanded in dimension 1": (10, 0),
    }


@pytest.mark.parametrize("overload", ["aten::cat", "aten::_foreach_add.List"])
def test_a_tensor_without_elements_among_others_keeps_its_dimensions(overload):
    several = [torch.randn(2, 3), torch.randn(0), torch.randn(2, 3)]
    arguments = {"tensors": several} if overload == "aten::cat" else {"self": several, "other": several}
    made = list(extended([case_of_values(overload, **arguments)], 1))
    assert len(made) > 20


def test_two_changes_at_once():
    """Where a loss is not reduced one argument lies otherwise, is broadcast or empty."""
    x = torch.randn(6, 10)
    case = case_of_values("aten::smooth_l1_loss", self=x, target=x + 1, reduction=1, beta=1.0)
    made = {v.how: unpack(v.case.load()) for v in extended([case], 1, most=250)}
    both = [a for how, a in made.items() if how.startswith("reduction = 0, ")]
    assert any(a["self"].stride() != a["target"].stride() for a in both)
    assert any(a["self"].numel() == 0 for a in both) and any(a["self"].shape != a["target"].shape for a in both)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_sizes_of_what_takes_the_largest_are_found(dim):
    """The last element need not be the largest: it matters all the same."""
    case = case_of_values("aten::amax", self=torch.rand(3, 5, 4), dim=[1], keepdim=False)
    sizes = {unpack(v.case.load())["self"].shape for v in extended([case], 1)}
    assert len({s[dim] for s in sizes if len(s) == 3}) > 5
    assert dim == 1 or any(len(s) == 3 and s[dim] == 0 for s in sizes)


def test_a_backward_call_follows_a_forward_one():
    """ATen computes with a negative beta, and with a gradient of half the batch, but no forward call leads there."""
    x = torch.rand(2, 3, 9, 9)
    loss = {"grad_output": x, "self": x, "target": x + 1, "reduction": 0}
    assert stands("aten::smooth_l1_loss_backward", {**loss, "beta": 1.0})
    assert not stands("aten::smooth_l1_loss_backward", {**loss, "beta": -1.0})
    pool = {"kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1], "ceil_mode": False, "count_include_pad": True}
    pool |= {"divisor_override": None}
    assert stands("aten::avg_pool2d_backward", {"grad_output": x, "self": x, **pool})
    assert not stands("aten::avg_pool2d_backward", {"grad_output": x[:1], "self": x, **pool})
    image = case_of_values("aten::gelu", self=torch.randn(2, 3, 4, 5), approximate="none")
    assert "channels-last arguments" in {v.how for v in extended([image], 1)}


@pytest.mark.parametrize("dim", [0, -1])
def test_a_dimension_between_others_is_long_too(dim):
    """A kernel may be right along the first and the last alone, and for the few elements of the case between these."""
    case = case_of_values("aten::cumsum", self=torch.rand(5, 6, 4), dim=dim, dtype=None)
    for seed in (5, 6):
        found = [unpack(v.case.load()) for v in extended([case], seed, "BLOCK = 16", 128)]
        assert any(a["dim"] == 1 and a["self"].dim() == 3 and a["self"].shape[1] > 16 for a in found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_sums_of_what_is_cut_on_the_way_are_left_out(dtype):
    """-1.5 as uint8 is another number on each processor."""
    x = torch.full((3, 5), -1.5, dtype=dtype)
    assert stands("aten::sum", {"self": x, "dtype": None}) and not stands(
        "aten::sum", {"self": x, "dtype": torch.uint8}
    )


def test_every_step_of_a_subgraph_makes_sense_by_itself():
    """ATen takes a gradient of four rows for a result of three, and reads what lies behind it."""
    read = {"grad_output": {"tensor": 0}, "output": {"tensor": 1}, "dim": 1, "input_dtype": {"dtype": "float32"}}
    steps = SubgraphCall("aten::_log_softmax_backward_data", read), SubgraphCall("aten::neg", {"self": {"tensor": 2}})
    matrix = SubgraphInput("float32", (None, None))
    name = Subgraph((matrix, matrix), steps, (3,)).define()._schema.name
    result = torch.randn(3, 2).log_softmax(1)
    assert stands(name, {"a0": torch.randn(3, 2), "a1": result})
    assert not stands(name, {"a0": torch.randn(4, 2), "a1": result})


def test_layouts_that_aten_itself_reads_wrongly_are_left_out():
    """mean and rstd with gaps: native_layer_norm_backward takes the memory, one number after the other."""
    x, mean = torch.randn(6, 5), torch.randn(6, 1)
    arguments = {"grad_out": x, "input": x, "normalized_shape": [5], "mean": mean, "rstd": mean.exp()}
    last = {"weight": None, "bias": None, "output_mask": [True, False, False]}
    case = case_of_values("aten::native_layer_norm_backward", **arguments, **last)
    how = {variant.how for variant in extended([case], 1)}
    assert "offset arguments" in how
    assert "strided arguments" not in how
    forward = {"input": x, "normalized_shape": [5], "weight": None, "bias": None, "eps": 1e-5}
    case = case_of_values("aten::native_layer_norm", **forward)
    assert "strided arguments" in {variant.how for variant in extended([case], 1)}


def test_indices_stay_valid():
    weight, indices = torch.randn(10, 4), torch.tensor([1, 9, 3])
    case = case_of_values("aten::embedding", weight=weight, indices=indices)
    variants = extended([case], 1)
    assert len(variants) > 20
    for variant in variants:
        arguments = unpack(variant.case.load())
        assert not arguments["indices"].numel() or arguments["indices"].max() < arguments["weight"].shape[0]


def test_values_are_other_values_and_special_ones_only_where_they_are_specified():
    def all_values(overload, **more):
        case = case_of_values(overload, self=torch.rand(20), **more)
        return torch.cat([unpack(v.case.load())["self"].reshape(-1) for v in extended([case], 1)])

    exp = all_values("aten::exp")
    assert exp.isnan().any() and (exp == math.inf).any() and (exp == -math.inf).any()
    assert all_values("aten::var.correction").isfinite().all()  # what comes of them depends on the algorithm
    tiny = torch.finfo(torch.float32).tiny
    assert ((exp != 0) & (exp.abs() < tiny)).any() and (exp < -0.5).any() and (exp > 10).any()


def test_a_seed_decides_everything():
    case = case_of_values("aten::exp", self=torch.randn(20))
    ids = [[v.case.id for v in extended([case], seed)] for seed in (1, 1, 2)]
    assert ids[0] == ids[1] != ids[2]


MUTATED = ["aten::exp", "aten::gelu", "aten::mm", "aten::sum.dim_IntList", "aten::add.Tensor", "aten::nan_to_num"]


@pytest.mark.parametrize("overload", sampled(MUTATED, ["aten::exp", "aten::mm", "aten::nan_to_num"]))
def test_cases_tell_every_mutant_from_the_operator(overload):
    cases = [c for c in opinfo_cases([overload], ("float32",)) if c.overload == overload]
    found = try_mutants(overload, cases + [v.case for v in extended(cases, 1)], enough=1)
    assert found.itself == found.cases > 20
    assert found.missed == [] and len(found.mutants) >= 3


def test_a_set_of_cases_that_is_too_weak_is_found_out():
    """OpInfo has no NaN for it, and values in reach of no limit: the input itself passes."""
    weak = [case_of_values("aten::nan_to_num", self=torch.randn(5))]
    assert "first argument" in try_mutants("aten::nan_to_num", weak).equal
    strong = weak + [v.case for v in extended(weak, 1)]
    assert try_mutants("aten::nan_to_num", strong).mutants["first argument"] > 0


def variants(overload, seed=3, source="", **arguments):
    return extended([case_of_values(overload, **arguments)], seed, source)


def test_special_values_meet_each_other():
    """NaN beside 1, 0 beside infinity: places are drawn for each tensor by itself."""
    x = torch.linspace(-2, 2, 600)
    (found,) = [v for v in variants("aten::mul.Tensor", self=x, other=x.flip(0)) if "NaN" in v.how]
    a, b = (unpack(found.case.load())[name] for name in ("self", "other"))
    assert bool((a.isnan() & b.isfinite()).any() and (b.isnan() & a.isfinite()).any())
    assert bool((a.isinf() & (b == 0)).any() or (b.isinf() & (a == 0)).any())


def test_ties_and_halves():
    found = [v for v in variants("aten::round", self=torch.linspace(-2, 2, 60)) if "1/2" in v.how]
    values = unpack(found[0].case.load())["self"]
    assert {-2.5, -0.5, 0.5, 1.5} <= set(values.tolist()) <= {n / 2 for n in range(-5, 6)}


def test_sizes_past_sixteen_bits_and_past_the_block_sizes_of_a_source():
    source = "BLOCK = min(1 << 13, n)\nSMALL = 4 * 16"
    assert literals(source) == [4, 13, 16, 64, 8192]
    x = torch.randn(4, 6)
    sizes = [
        unpack(v.case.load())["self"].shape
        for v in variants("aten::add.Tensor", source=source, self=x, other=x, alpha=1)
    ]
    assert max(s.numel() for s in sizes) > 1 << 17 and {*map(len, sizes)} == {*range(7)}
    x = torch.randn(5, 10, 5)
    softmax = variants("aten::_softmax", source=source, self=x, dim=1, half_to_float=False)
    shapes = [unpack(v.case.load())["self"].shape for v in softmax]
    edges = {n * k + d for n in (64, 16) for k in (1, 2, 3) for d in (-1, 0, 1)}
    assert {s[1] for s in shapes if len(s) == 3} > edges  # of those past 4,096 some are drawn
    assert max(s[1] for s in shapes) >= 8191
    lines = sorted(s[0] * s[2] for s in shapes if len(s) == 3)
    assert 1000 < lines[-1] <= 2 * 1027  # a kernel may give each line its own program


def test_numbers_and_dtypes_of_a_call_are_varied():
    leaky = [unpack(v.case.load()) for v in variants("aten::leaky_relu", self=torch.randn(9), negative_slope=0.01)]
    assert {0.0, 1.0, -1.0, 1.5, 0.025, 2, -3} <= {v["negative_slope"] for v in leaky}
    assert torch.float64 in {unpack(v.case.load())["dtype"] for v in variants("aten::sum", self=X, dtype=None)}
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    addmm = {v.how: unpack(v.case.load()) for v in variants("aten::addmm", self=a, mat1=a, mat2=b, beta=1, alpha=1)}
    assert addmm["beta 0, self of NaN"]["beta"] == 0 and addmm["beta 0, self of NaN"]["self"].isnan().all()


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "overload, name, wanted",
    [
        ("aten::cumsum", "dim", {-2, -1, 0, 1}),
        ("aten::amax", "keepdim", {True, False}),
        ("aten::amax", "dim", {(), (0,), (1,), (0, 1), (1, 0)}),
        ("aten::roll", "shifts", {(0,), (1,), (2,), (3,)}),
        ("aten::topk", "largest", {True, False}),
        ("aten::gelu", "approximate", {"none", "tanh"}),
        ("aten::div.Tensor_mode", "rounding_mode", {None, "floor", "trunc"}),
        ("aten::clamp", "min", {None, 0.0, -1.0, 3.0}),
        ("aten::constant_pad_nd", "value", {0, 1, -1, 0.5}),
        ("aten::dist", "p", {0, 1, 0.5, math.inf, -math.inf}),
        ("aten::full_like", "dtype", {torch.bool, torch.uint8, torch.float16}),
    ],
)
def test_every_number_flag_and_dimension_takes_its_values(overload, name, wanted):
    given = {
        "aten::cumsum": {"dim": 0, "dtype": None},
        "aten::amax": {"dim": [0], "keepdim": False},
        "aten::roll": {"shifts": [1], "dims": [0]},
        "aten::topk": {"k": 2, "dim": 1, "largest": True, "sorted": True},
        "aten::gelu": {"approximate": "none"},
        "aten::div.Tensor_mode": {"other": X + 9, "rounding_mode": "floor"},
        "aten::clamp": {"min": 0.5, "max": None},
        "aten::constant_pad_nd": {"pad": [1, 1], "value": 2},
        "aten::dist": {"other": X + 1, "p": 2},
        "aten::full_like": {"fill_value": 1, "dtype": None},
    }[overload]
    made = [unpack(v.case.load())[name] for v in variants(overload, self=X, **given)]
    assert wanted <= {tuple(v) if isinstance(v, list) else v for v in made} | {
        tuple(given[name]) if isinstance(given[name], list) else given[name]
    }


def test_no_factor_of_a_sum_is_infinite():
    generator, x = torch.Generator(), torch.randn(2, 3, 3)

    def tried(overload, **arguments):
        return [a["alpha"] for _, a in scalars(overload, {**arguments, "alpha": 1}, generator)]

    assert math.inf in tried("aten::add.Tensor", self=x, other=x)
    of_sum = tried("aten::addbmm", self=x[0], batch1=x, batch2=x, beta=1)
    assert len(of_sum) > 5 and all(map(math.isfinite, of_sum))


def test_modes_are_those_that_there_are():
    """ATen on a CPU takes any other interpolation, too, and makes nothing of it."""
    image, grid = torch.randn(1, 2, 4, 5), torch.rand(1, 3, 3, 2)
    own = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": False}
    made = [unpack(v.case.load()) for v in variants("aten::grid_sampler_2d", input=image, grid=grid, **own)]
    assert {v["interpolation_mode"] for v in made} == {v["padding_mode"] for v in made} == {0, 1, 2}


def test_a_call_of_no_elements_is_among_the_first_of_each_way():
    """What a wrapper does of them it may do of one way alone, such as `reduction`."""
    case = case_of_values("aten::mse_loss", self=X, target=X + 1, reduction=1)
    empty = {}
    for i, variant in enumerate(extended([case], 1, most=150)):
        arguments = unpack(variant.case.load())
        if not arguments["self"].numel():
            empty.setdefault(arguments["reduction"], i)
    assert empty.keys() == {0, 1, 2} and empty[1] < 12


def test_sizes_go_along_with_what_they_are_counted_in():
    """OpInfo has convolutions of one group and two."""
    x, w = torch.randn(2, 4, 9), torch.randn(6, 2, 3)
    made = [
        unpack(v.case.load())
        for v in variants("aten::conv1d", input=x, weight=w, bias=None, stride=[1], padding=[0], dilation=[1], groups=2)
    ]
    assert {1, 3, 4} <= {v["groups"] for v in made}
    assert {(2,), (3,)} <= {tuple(v[name]) for v in made for name in ("stride", "padding", "dilation")}


def test_each_size_is_varied_apart_from_the_others():
    a, b = torch.randn(5, 5), torch.randn(5, 5)
    made = [unpack(v.case.load()) for v in variants("aten::mm", source="BM = 64", self=a, mat2=b)]
    for at in (0, 1, 2):
        sizes = [(*v["self"].shape, v["mat2"].shape[1]) for v in made]
        assert {63, 64, 65, 127, 128, 129, 193} <= {s[at] for s in sizes if all(n < 9 for n in s[:at] + s[at + 1 :])}
    assert max(v["self"].shape[0] for v in made) > 1000


def test_more_dimensions_than_samples_have():
    index = torch.randint(4, (3, 4), generator=torch.Generator().manual_seed(0))
    made = [unpack(v.case.load()) for v in variants("aten::gather", self=torch.randn(3, 4), dim=1, index=index)]
    assert {3, 4, 5, 6} <= {v["self"].dim() for v in made}
    batches = [v["self"] for v in made if v["self"].dim() == 3]
    assert any(not torch.equal(b[..., 0], b[..., 1]) for b in batches)


def test_values_of_every_kind():
    whole = [unpack(v.case.load())["self"] for v in variants("aten::mul.Tensor", self=I, other=I + 1)]
    assert any({2**63 - 1, -(2**63)} <= {*t.flatten().tolist()} for t in whole)
    made = {v.how: unpack(v.case.load())["self"] for v in variants("aten::tanh", self=torch.randn(40))}
    assert made["values: NaN and infinities"].isnan().any() and made["values: some infinities"].isinf().any()
    zeros = made["values: zeros of both signs"]
    assert (zeros[zeros == 0].signbit()).any() and not (zeros[zeros == 0].signbit()).all()
    assert made["values: of all magnitudes"].abs().max() > 1e4 > 1e-4 > made["values: of all magnitudes"].abs().min()
    masked = {v.how for v in variants("aten::_log_softmax", self=torch.randn(4, 9), dim=1, half_to_float=False)}
    assert "values: minus infinities" in masked


I = torch.arange(12).view(3, 4)  # noqa: E741


def test_indices_smaller_than_what_they_point_into():
    x, index = torch.randn(5, 4), torch.randint(4, (5, 4), generator=torch.Generator().manual_seed(0))
    shapes = {tuple(unpack(v.case.load())["index"].shape) for v in variants("aten::gather", self=x, dim=1, index=index)}
    assert {(4, 4), (5, 3)} <= shapes


def test_cases_that_overflow_on_the_way_are_left_out():
    """Whether a product of 131 numbers around 5 is finite depends on the order in which a kernel multiplies."""
    x = 5 * torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    for variant in variants("aten::cumprod", self=x, dim=1, dtype=None):
        arguments = unpack(variant.case.load())
        if arguments["self"].isfinite().all():
            assert not torch.cumprod(arguments["self"], 1).isinf().any(), variant.how


def test_templates_have_room_for_variants():
    """The largest sample of bmm makes a result that is too large to be varied."""
    cases = [
        case_of_values("aten::bmm", self=torch.randn(8, 128, 1), mat2=torch.randn(8, 1, 256)),
        case_of_values("aten::bmm", self=torch.randn(2, 3, 4), mat2=torch.randn(2, 4, 5)),
    ]
    how = {v.how for v in extended(cases, 3)}
    assert "transposed mat2" in how and "values: zeros" in how


@pytest.mark.parametrize(
    "overload, dtypes", [("aten::exp", ("float32", "bool")), ("aten::sum.dim_IntList", ("int64",))]
)
def test_kept_samples_are_the_samples(tmp_path, monkeypatch, overload, dtypes):
    first = kept_cases(tmp_path, [overload], dtypes)
    monkeypatch.setattr(opinfo, "opinfo_cases", lambda *asked: pytest.fail("the database is read again"))
    again = kept_cases(tmp_path, [overload], dtypes)
    assert first and [(c.id, c.shapes, c.dtypes) for c in again] == [(c.id, c.shapes, c.dtypes) for c in first]
    read = [[(c.load().header(), [*map(bytes, c.load().data)]) for c in cases] for cases in (first, again)]
    assert read[0] == read[1]


def test_a_call_that_brings_down_atens_process_is_no_case():
    """Far past the end of the gradient's only row: nobody made the call, so it is not asked in this process."""
    arguments = {"grad_output": torch.ones(1, 4), "indices": torch.tensor([1 << 40]), "num_weights": 1}
    arguments |= {"padding_idx": -1, "scale_grad_by_freq": True}
    case = case_of_values("aten::embedding_dense_backward", **arguments)
    with pytest.raises(NoReference, match="SIGSEGV"):
        reference(replace(case, signature="num_weights = 1"))


@pytest.mark.parametrize(
    ("overload", "dtype", "least"),
    [("aten::zero", "float32", 6), ("aten::rand", "float32", 6), ("aten::native_dropout", "bfloat16", 12)],
)
def test_what_nothing_calls_has_calls_that_its_schema_tells(overload, dtype, least):
    cases = opinfo_cases([overload], (dtype,))
    assert {case.overload for case in cases} == {overload} and len(cases) >= least
    assert all(stands(overload, unpack(case.load())) for case in cases)
    if overload == "aten::rand":
        assert {unpack(case.load())["dtype"] for case in cases} == {torch.float32}
    else:
        assert {len(case.shapes[0]) for case in cases} == {0, 1, 2, 3, 4}
        assert {kind for case in cases for kind in case.dtypes} == {dtype}


def test_a_schema_tells_of_sparse_tensors_and_of_no_backward_operator():
    masks = [unpack(case.load())["mask"] for case in schema_cases("aten::sparse_mask", (torch.float32,))]
    assert masks and all(mask.is_sparse for mask in masks) and {mask.dense_dim() for mask in masks} >= {0, 1}
    assert schema_cases("aten::_softmax_backward_data", (torch.float32,)) == []


def test_a_call_made_of_a_schema_without_tensors_names_the_device_that_it_is_run_on():
    case = schema_cases("aten::randperm", (torch.float32,))[0]
    assert unpack(case.load(), device="meta")["device"] == torch.device("meta")


def test_gradients_of_scaled_bags_are_divided_by_the_count_of_their_own_index():
    """ATen on the CPU divides the second row's here by the count of index 2."""
    indices, nothing = torch.tensor([2, 2, 2, 5, 7]), torch.zeros(5, dtype=torch.int64)
    arguments = {"grad": torch.ones(5, 2), "indices": indices, "offset2bag": torch.arange(5), "bag_size": nothing}
    arguments |= {"maximum_indices": nothing, "num_weights": 8, "scale_grad_by_freq": True, "mode": 0}
    case = case_of_values("aten::_embedding_bag_dense_backward", **arguments, per_sample_weights=None)
    found = unpack(reference(case).native)["return"][:, 0]
    assert found.tolist() == [0, 0, 1, 0, 0, 1, 0, 1]


POOLED = torch.rand(2, 4, 4, 2)
MAXIMA = {"self": POOLED, "indices": torch.ops.aten.adaptive_max_pool2d(POOLED, [2, 3])[1]}
FACTORS = {"LU_data": torch.rand(3, 4, 7, 5), "unpack_data": True, "unpack_pivots": True}
WINDOWS = {"input_sizes": [5, 5, 5, 5], "dim": 0, "size": 3, "step": 1}
CHANNELS = {
    **dict.fromkeys(("grad_out", "input"), torch.rand(5, 20)),
    **dict.fromkeys(("weight", "running_var", "save_mean", "save_var"), torch.rand(20)),
    **{"update": False, "eps": 1e-5, "output_mask": [True, False, False], "reserve": torch.empty(0)},
}


@pytest.mark.parametrize(
    ("overload", "call", "name", "fitting", "other"),
    [
        ("aten::adaptive_max_pool2d_backward", MAXIMA, "grad_output", torch.rand(2, 4, 2, 3), torch.rand(2, 2, 2, 3)),
        ("aten::_adaptive_avg_pool2d_backward", {"self": torch.rand(2, 4, 4, 2)}, "grad_output",
         torch.rand(2, 4, 2, 3), torch.rand(2, 2, 2, 3)),
        ("aten::lu_unpack", FACTORS, "LU_pivots", torch.ones(3, 4, 5).int(), torch.ones(3, 3, 5).int()),
        ("aten::batch_norm_backward", CHANNELS, "running_mean", torch.rand(20), torch.rand(7)),
        ("aten::unfold_backward", WINDOWS, "grad_in", torch.rand(3, 5, 5, 5, 3),
         torch.empty_strided((0, 5, 5, 5, 3), (375, 25, 5, 1, 125))),
        ("aten::unfold_backward", WINDOWS, "grad_in", torch.rand(3, 5, 5, 5, 3), torch.rand(5, 2, 1).permute(1, 2, 0)),
    ],
)  # fmt: skip
def test_shapes_that_aten_does_not_compare_have_to_fit(overload, call, name, fitting, other):
    """ATen on the CPU answers each of these calls; on a GPU it reads beside the arguments for some."""
    assert stands(overload, {**call, name: fitting})
    assert not stands(overload, {**call, name: other})


@pytest.mark.parametrize(
    ("pivots", "stand"),
    [([1, 2, 3, 4], True), ([3, -3, -3, 4], True), ([-2, -2, -4, -4], True), ([5, 4, 3, 4], False),
     ([0, 2, 3, 4], False), ([1, 2, 3, -4], False), ([-2, -2, -2, 4], False), ([1, 2, -5, -5], False)],
)  # fmt: skip
def test_pivots_of_symmetric_factors_name_rows_and_the_negative_ones_are_pairs(pivots, stand):
    factors = torch.eye(4) + torch.rand(4, 4).tril(-1)
    call = {"LD": factors, "pivots": torch.tensor(pivots, dtype=torch.int32), "B": torch.rand(4, 2), "hermitian": False}
    assert stands("aten::linalg_ldl_solve", call) == stand
    lu = {"LU": call["LD"], "pivots": call["pivots"], "B": call["B"], "left": True, "adjoint": False}
    assert stands("aten::linalg_lu_solve", lu) == (stand and min(pivots) > 0)


@pytest.mark.parametrize(
    ("overload", "start", "end", "stand"),
    [("linspace", 0, 127, True), ("linspace", 0, -3, False), ("linspace", 0.0, 256.0, False),
     ("logspace", 0, 2, True), ("logspace", 0, 3, False)],
)  # fmt: skip
def test_equally_spaced_integers_are_in_range(overload, start, end, stand):
    """ATen wraps the ends around before it interpolates."""
    call = {"start": start, "end": end, "steps": 5, **({"base": 10.0} if overload == "logspace" else {})}
    assert stands(f"aten::{overload}", {**call, "dtype": torch.uint8}) == stand
    assert stands(f"aten::{overload}", {**call, "dtype": torch.float32})


def test_the_largest_samples_are_left_out_if_all_are_too_large():
    small, large, medium = (case_of_values("aten::neg", self=torch.zeros(size)) for size in (10, 1000, 100))
    assert within(4440, [small, large, medium]) == [small, large, medium]
    assert within(4439, [small, large, medium]) == [small, medium] and within(39, [small, large]) == []


@pytest.mark.parametrize("value, alpha, stand", [(torch.nan, 0, False), (torch.nan, 1, True), (1.0, 0, True)])
def test_a_product_with_nan_is_multiplied_by_no_zero(value, alpha, stand):
    """ATen's float32 leaves the product out, its bfloat16 does not."""
    call = {"self": torch.rand(2, 3), "mat1": torch.full((2, 4), value), "mat2": torch.rand(4, 3)}
    assert stands("aten::addmm", {**call, "beta": 1, "alpha": alpha}) == stand


WINDOW_OPTIONS = {"stride": [2, 2], "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False}


@pytest.mark.parametrize(
    ("overload", "options"),
    [
        ("aten::adaptive_max_pool2d_backward", {}),
        ("aten::max_pool2d_with_indices_backward", {"kernel_size": [2, 2], **WINDOW_OPTIONS}),
    ],
)
def test_indices_of_maxima_lie_in_their_windows(overload, options):
    """The first two rows and columns of four are a window of both."""
    call = {"grad_output": torch.rand(3, 2, 2), "self": torch.rand(3, 4, 4), **options}
    first_of_each = torch.tensor([[0, 2], [8, 10]]).expand(3, 2, 2)
    assert stands(overload, {**call, "indices": first_of_each})
    assert stands(overload, {**call, "indices": first_of_each + 5})
    for outside in (1, 4, 16, -1):
        moved = first_of_each + torch.tensor([[0, outside], [0, 0]]) * 2
        assert not stands(overload, {**call, "indices": moved}), outside


def test_a_backward_call_is_of_one_forward_call():
    grad, y = torch.rand(5, 10, 1), torch.rand(1, 10, 5)
    call = {"grad_output": grad, "output": y, "dim": 1, "input_dtype": torch.float32}
    assert not stands("aten::_log_softmax_backward_data", call)
    assert stands("aten::_log_softmax_backward_data", {**call, "output": grad})
    x, ones = torch.rand(6, 2, 2), torch.ones(6, 1, 1)
    call = {"input": x, "normalized_shape": [2, 2], "mean": ones, "rstd": ones, "weight": None, "bias": None}
    call["output_mask"] = [True, False, False]
    assert not stands("aten::native_layer_norm_backward", {"grad_out": x.transpose(0, 1).contiguous(), **call})
    assert stands("aten::native_layer_norm_backward", {"grad_out": x, **call})


def test_calls_without_tensors_are_varied():
    arguments = {"n": 5, "m": 7, "dtype": torch.float32, "layout": None, "device": "cpu", "pin_memory": False}
    given = [unpack(v.case.load()) for v in extended([case_of_values("aten::eye.m", **arguments)], 1, most=60)]
    assert {None, torch.int64} <= {a["dtype"] for a in given} and {a["n"] for a in given} >= {0, 1, 17}


def test_a_call_that_reads_far_beyond_a_small_argument_has_no_answer():
    """ATen reads a gradient of 15 numbers as one of 1,050."""
    v, g, norms = torch.randn(5, 3, 70), torch.randn(1, 1, 70), torch.ones(1, 1, 70)
    call = {"saved_v": v, "saved_g": g, "saved_norms": norms, "dim": 2}
    assert stands("aten::_weight_norm_interface_backward", {"grad_w": torch.randn(5, 3, 70), **call})
    for seed in range(3):
        small = torch.randn(5, 3, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        wide = {name: x.double() if isinstance(x, torch.Tensor) else x for name, x in call.items()}
        assert not stands("aten::_weight_norm_interface_backward", {"grad_w": small, **wide})
