"""What the comparison must notice, one mutation of a right answer at a time."""

import math
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from traces.overloads import bind, call, resolve
from traces.values import pack
from verify.cases.case import Case, case_of, case_of_values, reference
from verify.cases.elements import widen
from verify.cases.packed import contents
from verify.comparison.accuracy import accuracy_report
from verify.comparison.compare import compare
from verify.comparison.deviation import _not_copied
from verify.comparison.ghost import conjured
from verify.comparison.tolerance import tolerance
from verify.operators import group


def frozen(**values):
    packed = pack(values)
    packed.data = [None if d is None else bytes(d) for d in packed.data]
    return packed


def judged(overload, arguments, answer):
    """The detail of the mismatch of `answer(**fresh arguments)`; None if there is none."""
    build = lambda: {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}  # noqa: E731
    expected = reference(Case("case", overload, "", lambda: frozen(**build())))
    fresh = build()
    mismatch = compare(overload, expected, frozen(**fresh, **{"return": answer(**fresh)}))
    return mismatch.detail if mismatch else None


X, Y = torch.randn(4, 6), torch.randn(4, 6)


def test_statistics_may_be_float32_as_on_gpus():
    x = X.bfloat16()
    arguments = {"input": x, "normalized_shape": [6], "weight": None, "bias": None, "eps": 1e-5}

    def answer(input, normalized_shape, weight, bias, eps, dtype, off=0.0):
        out, mean, rstd = torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
        return out, mean.to(dtype) + off, rstd

    def told(**changed):
        return judged("aten::native_layer_norm", arguments, lambda **a: answer(**a, **changed))

    assert told(dtype=torch.bfloat16) is told(dtype=torch.float32) is None
    assert told(dtype=torch.float64) == "return[1]: dtype is float64, expected bfloat16"
    assert "elements wrong" in told(dtype=torch.float32, off=0.5)


def mul(self, other):
    return self * other


def scribble(self, other):
    result = self * other
    other[0, 0] = 7
    return result


def off(index, by):
    def answer(self, other):
        result = self * other
        result[index] += by
        return result

    return answer


ANSWERS = {
    "right": (mul, None),
    "float64": (lambda self, other: (self * other).double(), "return: dtype is float64, expected float32"),
    "lost dimension": (lambda self, other: (self * other)[None], "return: shape is (1, 4, 6), expected (4, 6)"),
    "transposed memory": (lambda self, other: (self * other).t().contiguous().t(), "return: stride is (1, 4)"),
    "tuple": (lambda self, other: (self * other,), "returned (tensor), expected tensor"),
    "none": (lambda self, other: None, "returned None, expected tensor"),
    "input changed": (scribble, "argument other was changed"),
    "input returned": (lambda self, other: self.mul_(other), "return must not share memory with self"),
    "one element": (off((2, 3), 1e-3), "1 of 24 elements wrong"),
    "NaN": (off((2, 3), float("nan")), "NaN where a number is expected"),
    "infinity": (off((2, 3), float("inf")), "1 of 24 elements wrong"),
    "zeros": (lambda self, other: torch.zeros(4, 6), "24 of 24 elements wrong, 0 where"),
    "lazy negation": (lambda self, other: torch._neg_view(-(self * other)), "neg is True"),
}


@pytest.mark.parametrize("answer, detail", ANSWERS.values(), ids=ANSWERS.keys())
def test_functional(answer, detail):
    found = judged("aten::mul.Tensor", {"self": X, "other": Y}, answer)
    assert found is None if detail is None else detail in found


IN_PLACE = {
    "right": (lambda self, other: self.mul_(other), None),
    "nothing done": (lambda self, other: self, "self: 24 of 24 elements wrong"),
    "zeroed": (lambda self, other: self.zero_(), "24 of 24"),
    "result elsewhere": (lambda self, other: (self.mul_(other), self.clone())[1], "must share memory"),
}


@pytest.mark.parametrize("answer, detail", IN_PLACE.values(), ids=IN_PLACE.keys())
def test_in_place(answer, detail):
    found = judged("aten::mul_.Tensor", {"self": X, "other": Y}, answer)
    assert found is None if detail is None else detail in found


def test_infinite_and_nan_results_are_right_where_expected():
    x = torch.tensor([0.0, -1.0, float("inf"), float("nan")])
    assert judged("aten::sqrt", {"self": x}, lambda self: self.sqrt()) is None
    assert judged("aten::sqrt", {"self": x}, lambda self: self.abs().sqrt()) is not None


def test_a_range_may_be_off_by_roundings_of_its_start_and_steps():
    arguments = {"start": 2.1, "end": -2.9, "step": -1.0, "dtype": torch.float32}

    def told(by):
        return judged("aten::arange.start_step", arguments, lambda start, end, step, dtype: in_steps + by)

    in_steps = torch.tensor(2.1) + torch.arange(5) * torch.tensor(-1.0)  # 0.0999999, where it is 0.1
    assert told(0.0) is None and "elements wrong" in told(1e-5)


def test_parts_of_a_complex_number_are_accurate_to_its_modulus():
    arguments = {"self": torch.tensor([3.0 + 4.0j, 1.0 + 1.0j]), "other": torch.tensor([4.0 + 3.0000002j, 1.0 + 1.0j])}

    def told(by):
        return judged("aten::mul.Tensor", arguments, lambda self, other: self * other + torch.tensor([by, 0.0]))

    assert told(0.0) is told(2e-6) is None  # of a modulus of 25, and a real part of -1e-6
    assert "elements wrong" in told(1e-4) and "elements wrong" in told(1e-4j)


def test_fresh_memory_is_no_answer_that_was_computed_elsewhere():
    """ATen's sum is infinite, that of the reference NaN, and so is fresh memory."""
    arguments = {"self": torch.full((3,), 3e38), "other": torch.full((3,), 2e38)}
    expected = reference(case_of_values("aten::add.Tensor", **arguments))
    unsure = replace(expected, values=pack({**arguments, "return": torch.full((3,), math.nan, dtype=torch.float64)}))
    ghost = pack({**arguments, "return": torch.full((3,), math.nan)})
    assert conjured("aten::add.Tensor", unsure, ghost) is None
    answer = pack({**arguments, "return": torch.full((3,), math.inf)})
    assert "computed elsewhere" in str(conjured("aten::add.Tensor", unsure, answer))


def test_integers_are_exact():
    x = torch.arange(2**24, 2**24 + 5)
    assert judged("aten::add.Tensor", {"self": x, "other": x}, lambda self, other: self + other) is None
    wrong = judged(
        "aten::add.Tensor", {"self": x, "other": x}, lambda self, other: (self.float() + other.float()).long()
    )
    assert "elements wrong" in wrong


def test_reference_is_float64_and_keeps_aliasing():
    base = torch.randn(8, dtype=torch.float32)
    packed = frozen(self=base[:4], other=base[4:], again=base[:4], index=torch.arange(3))
    wide = widen(packed)
    assert [t.dtype for t in wide.tensors] == ["float64"] * 3 + ["int64"]
    assert len(wide.groups) == 2 and wide.tensors[1].offset == 32
    assert torch.equal(contents(wide, 1), base[4:].double())


def test_a_right_kernel_in_half_precision_passes_and_a_sloppy_one_does_not():
    x = torch.randn(64, 64, dtype=torch.float16)
    assert judged("aten::mm", {"self": x, "mat2": x}, lambda self, mat2: (self.float() @ mat2.float()).half()) is None
    sloppy = lambda self, mat2: ((self.float() @ mat2.float()) * 1.06).half()  # noqa: E731
    assert judged("aten::mm", {"self": x, "mat2": x}, sloppy) is not None


def test_every_tolerance_has_a_reason_and_integers_none():
    assert group("aten::_foreach_copy_") == group("aten::zeros_like") == "exact"
    assert group("aten::gelu_backward") == group("aten::add_.Tensor") == "pointwise"
    assert group("aten::native_layer_norm_backward") == group("aten::logcumsumexp") == "accumulate"
    for overload in ("aten::cat", "aten::add.Tensor", "aten::mm"):
        assert tolerance(overload, torch.float32).reason
        assert tolerance(overload, torch.int64).rtol == 0


PATTERNS = {
    "from flat index 5 on": lambda w: w.view(-1)[5:].fill_(True),
    "up to flat index 3": lambda w: w.view(-1)[:4].fill_(True),
    "only at index 3 of dimension 0": lambda w: w[3, 1:5].fill_(True),
    "only at index 2 of dimension 1": lambda w: w[::2, 2].fill_(True),
    "all of indices 0, 2 of dimension 0": lambda w: w[::2].fill_(True),
    "all of indices 1, 3 of dimension 1": lambda w: w[:, 1:4:2].fill_(True),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern):
    wrong = torch.zeros(4, 6, dtype=torch.bool)
    PATTERNS[pattern](wrong)
    line, report = accuracy_report("return", X + wrong, X.double(), wrong)
    assert pattern in line and pattern in report
    assert report.count(": ") < 20


def test_a_call_recorded_on_another_device_is_replayed_on_the_host(tmp_path):
    class Stored:
        overload, signature, header, contents = "aten::arange", "", {"tensors": [], "groups": []}, []

    class Recorded:
        def packed(self, record):
            return frozen(end=3, dtype=None, layout=None, device=torch.device("cuda:0"), pin_memory=None)

    expected = reference(case_of(Recorded(), Stored()))
    assert contents(expected.native, 0).tolist() == [0, 1, 2]


ATEN = {
    "aten::exp": lambda x: {"self": x},
    "aten::sqrt": lambda x: {"self": x},
    "aten::gelu": lambda x: {"self": x},
    "aten::mul.Tensor": lambda x: {"self": x, "other": x.flip(0)},
    "aten::mm": lambda x: {"self": x, "mat2": x.t()},
    "aten::sum.dim_IntList": lambda x: {"self": x, "dim": [0]},
    "aten::mean": lambda x: {"self": x},
    "aten::_softmax": lambda x: {"self": x, "dim": 1, "half_to_float": False},
    "aten::linalg_vector_norm": lambda x: {"self": x * 1e19},
    "aten::full_like": lambda x: {"self": x, "fill_value": 0.1},
    "aten::_to_copy": lambda x: {"self": x, "dtype": torch.bfloat16},
    "aten::copy_": lambda x: {"self": torch.zeros(8, 8, dtype=torch.bfloat16), "src": x},
    "aten::fill_.Scalar": lambda x: {"self": x, "value": 0.1},
    "aten::isnan": lambda x: {"self": x},
    "aten::angle": lambda x: {"self": torch.complex(x.float(), x.float())},
    "aten::cumsum": lambda x: {"self": x, "dim": 0},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("overload", ATEN)
def test_atens_own_answer_is_right(overload, dtype):
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(1)).abs().to(dtype)
    aten = lambda **given: call(resolve(overload), bind(resolve(overload), (), given))  # noqa: E731
    assert judged(overload, ATEN[overload](x), aten) is None


@pytest.mark.parametrize("overload", ["aten::mean", "aten::sum.dim_IntList", "aten::mm", "aten::_softmax"])
def test_five_percent_off_is_wrong_in_every_dtype(overload):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(8, 8, generator=torch.Generator().manual_seed(1)).abs().to(dtype)
        aten = lambda **given: call(resolve(overload), bind(resolve(overload), (), given)) * 1.05  # noqa: E731
        assert "elements wrong" in judged(overload, ATEN[overload](x), aten)


def test_imaginary_parts_are_compared():
    z = torch.complex(torch.ones(2), torch.ones(2))
    assert judged("aten::neg", {"self": z}, lambda self: -self) is None
    assert "wrong" in judged("aten::neg", {"self": z}, lambda self: torch.complex(-self.real, self.imag))


def test_memory_between_the_elements_of_a_written_argument():
    base = torch.zeros(4, 6)

    def case():
        memory = base.clone()
        return {"self": memory[:, ::2]}

    expected = reference(Case("case", "aten::exp_", "", lambda: frozen(**case())))
    for spill, wrong in ((False, False), (True, True)):
        given = case()
        result = given["self"].exp_()
        if spill:
            given["self"].as_strided((1,), (1,), 1).fill_(9)
        assert (compare("aten::exp_", expected, frozen(**given, **{"return": result})) is not None) == wrong


TIED = torch.tensor([[3, 1, 3, 3], [2, 2, 0, 2]])


@pytest.mark.parametrize("is_sorted", [True, False])
def test_what_is_chosen_unsorted_stands_in_any_order(is_sorted):
    arguments = {"self": torch.randn(3, 9), "k": 4, "dim": 1, "sorted": is_sorted}

    def said(change):
        def answer(**fresh):
            values, indices = fresh["self"].topk(4, 1)
            return change(values, indices)

        return judged("aten::topk", arguments, answer)

    assert said(lambda values, indices: (values, indices)) is None
    assert (said(lambda values, indices: (values.flip(1), indices.flip(1))) is None) is not is_sorted
    assert said(lambda values, indices: (values.flip(1), indices)) is not None
    assert said(lambda values, indices: (values.flip(1), indices.flip(1).roll(1, 1))) is not None
    assert said(lambda values, indices: (values.flip(1) * 2, indices.flip(1))) is not None


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
@pytest.mark.parametrize("overload", ["aten::topk", "aten::sort", "aten::sort.stable"])
def test_any_of_several_equal_elements_may_be_named_where_aten_leaves_it_open(overload, dtype):
    how = {"aten::topk": {"k": 3}, "aten::sort": {}, "aten::sort.stable": {"stable": True}}[overload]
    arguments = {"self": TIED.to(dtype), "dim": 1, **({} if "topk" in overload else {"descending": True}), **how}

    def said(change):
        def answer(**fresh):
            values, indices = call(resolve(overload), bind(resolve(overload), (), fresh))
            change(values, indices)
            return values, indices

        return judged(overload, arguments, answer)

    def swap(values, indices):
        indices[0, :2] = indices[0, :2].flip(0)

    def twice(values, indices):
        indices[0, 0] = indices[0, 1]

    def another(values, indices):
        indices[1, 0] = 2

    def outside(values, indices):
        indices[1, 0] = 4

    def value(values, indices):
        values[0, 0] = 1

    assert said(lambda values, indices: None) is None
    assert (said(swap) is None) == (overload != "aten::sort.stable")
    for change in (twice, another, outside, value):
        assert "wrong" in said(change), change


def test_an_index_where_a_dimension_is_reduced_away():
    arguments = {"self": TIED, "k": 3, "dim": 1, "keepdim": False}
    right = lambda **a: (torch.tensor([3, 2]), torch.tensor([3, 3]))  # noqa: E731
    assert judged("aten::kthvalue", arguments, right) is None
    assert judged("aten::kthvalue", arguments, lambda **a: (torch.tensor([3, 2]), torch.tensor([1, 3])))


def test_an_ill_conditioned_case_asks_for_no_more_than_its_inputs_hold():
    """Layer normalisation of values near 1000 that differ by 4: a rounding of the mean shows in the fifth digit."""
    x = 1000 + 4 * torch.randn(6, 40, generator=torch.Generator().manual_seed(1))
    arguments = {"input": x, "normalized_shape": [40], "weight": None, "bias": None, "eps": 1e-5}

    def norm(mean_error=0.0, moments=False):
        def answer(input, normalized_shape, weight, bias, eps):
            mean = input.mean(1, keepdim=True) * (1 + mean_error)
            var = (
                (input * input).mean(1, keepdim=True) - mean * mean if moments else input.var(1, correction=0)[:, None]
            )
            return (input - mean) * (var + eps).rsqrt(), mean, (var + eps).rsqrt()

        return answer

    assert judged("aten::native_layer_norm", arguments, norm(2.0**-24)) is None
    assert "wrong" in judged("aten::native_layer_norm", arguments, norm(2.0**-16))
    assert "wrong" in judged("aten::native_layer_norm", arguments, norm(moments=True))


def test_a_sum_may_err_as_much_as_four_times_what_atens_own_does():
    """Like terms added one after another: each rounding goes the same way, in ATen's float32 too."""
    grad = torch.full((4000, 1), 0.1)
    arguments = {"grad_output": grad, "indices": torch.zeros(4000, dtype=torch.int64), "num_weights": 1}
    arguments |= {"padding_idx": -1, "scale_grad_by_freq": False}
    exact = grad.double().sum(0, keepdim=True)
    overload = "aten::embedding_dense_backward"
    atens = float((torch.ops.aten.embedding_dense_backward(*arguments.values()) - exact).abs())
    allowed, wrong = (exact + factor * atens for factor in (3.9, 4.2))
    assert judged(overload, arguments, lambda **a: allowed.float()) is None
    assert "wrong" in judged(overload, arguments, lambda **a: wrong.float())


def test_at_a_border_of_two_cells_the_side_of_atens_float32_is_right_too():
    op = torch.ops.aten.grid_sampler_2d_backward
    image = torch.tensor([0.0, 1, 0, 5, 0]).expand(1, 1, 3, 5).contiguous()
    grid = torch.tensor([-1e-9, 0.3]).view(1, 1, 1, 2)  # -1e-9 + 1 is 1 in float32, and column 2 that of the next cell
    arguments = {"grad_output": torch.ones(1, 1, 1, 1), "input": image, "grid": grid, "interpolation_mode": 0}
    arguments |= {"padding_mode": 0, "align_corners": True, "output_mask": [False, True]}

    def told(change):
        return judged("aten::grid_sampler_2d_backward", arguments, lambda **a: (None, change(op(**a)[1])))

    assert torch.equal(op(*arguments.values())[1], torch.tensor([10.0, 0]).view(1, 1, 1, 2))  # and not -2
    assert told(lambda native: native * (1 + 2.0**-22)) is None
    assert told(lambda native: native.new_tensor([-2.0, 0]).view_as(native)) is None  # the other side, float64's
    assert "1 of 2 elements wrong" in told(lambda native: native * 1.01)
    assert "1 of 2 elements wrong" in told(lambda native: native - 6 * (native != 0))


def test_what_is_near_atens_own_answer_is_right_only_where_that_is_far_from_the_reference():
    x, ulp = torch.ones(1), torch.finfo(torch.float32).eps
    answer = lambda root: frozen(self=x, **{"return": torch.tensor([root])})  # noqa: E731
    expected = reference(case_of_values("aten::sqrt", self=x))
    expected = replace(expected, native=answer(1 + ulp))  # as if ATen were an ulp off, of the eight that are allowed
    assert compare("aten::sqrt", expected, answer(1 + 8 * ulp)) is None
    assert compare("aten::sqrt", expected, answer(1 + 9 * ulp)) is not None  # eight from ATen's


def test_means_that_cancel_are_accurate_to_the_size_of_their_terms():
    x = torch.randn(2, 5, 8, 8)
    x -= x.mean((0, 2, 3), keepdim=True)  # as after another normalization: means of 1e-8, of terms of about 1
    arguments = {"input": x, "weight": None, "bias": None, "running_mean": torch.zeros(5), "running_var": torch.ones(5)}
    arguments |= {"training": True, "momentum": 0.1, "eps": 1e-5}

    def told(off):
        def answer(running_mean, **others):
            result, mean, rstd = torch.ops.aten._native_batch_norm_legit(running_mean=running_mean, **others)
            running_mean += 0.1 * off
            return result, mean + off, rstd

        return judged("aten::_native_batch_norm_legit", arguments, answer)

    assert told(2e-8) is None
    assert "5 of 5 elements wrong" in told(1e-5)


def test_a_term_of_a_product_that_is_no_normal_number_may_be_lost():
    a, b = (
        torch.full((2, 4), 1e-36),
        torch.full((4, 3), 1e-2),
    )  # terms of 1e-38, of which 1.2e-38 is the smallest normal
    assert judged("aten::mm", {"self": a, "mat2": b}, lambda self, mat2: (self @ mat2) * 0.75) is None
    assert "6 of 6 elements wrong" in judged("aten::mm", {"self": a, "mat2": b}, lambda self, mat2: (self @ mat2) * 0.5)
    assert "2 of 2 elements wrong" in judged(
        "aten::sum.dim_IntList", {"self": a, "dim": [1]}, lambda self, dim: 3e-36 + self.sum(1) * 0
    )
    doubles = {"self": a.double(), "mat2": b.double()}
    assert "6 of 6 elements wrong" in judged("aten::mm", doubles, lambda self, mat2: (self @ mat2) * 0.75)


def test_of_a_number_that_an_integer_cannot_hold_any_integer_is_right():
    x = torch.tensor([float("inf"), 3.7, float("nan"), 1e30, -2.2])
    arguments = {"self": x, "dtype": torch.int64}
    told = lambda values: judged("aten::_to_copy", arguments, lambda **a: torch.tensor(values))  # noqa: E731
    assert told([7, 3, 0, -1, -2]) is None
    assert "1 of 5 elements wrong" in told([7, 4, 0, -1, -2])
    assert "wrong" in judged(
        "aten::_to_copy", {"self": torch.tensor([2.0**31]), "dtype": torch.int64}, lambda **a: torch.tensor([0])
    )


def test_the_sign_of_a_complex_zero_is_not_laid_down():
    z = torch.tensor([complex(1, -0.0), complex(0, 2)])
    assert (
        judged("aten::div.Tensor", {"self": z, "other": torch.tensor([2.0, 1.0])}, lambda self, other: self / other + 0)
        is None
    )
    assert "wrong" in judged("aten::neg", {"self": torch.zeros(2)}, lambda self: torch.zeros(2))


def test_a_copied_nan_keeps_its_bits_unless_aten_changes_them():
    given, swapped, own, other = (
        torch.tensor([*bits, 0x3F80], dtype=torch.int16).view(torch.bfloat16)
        for bits in ((0x7FC0, 0x7FC1), (0x7FC1, 0x7FC0), (-1, -1), (-1, 0x7FC2))
    )
    detail = judged("aten::clone", {"self": given}, lambda **_: swapped)
    assert detail is not None and "2 of 3 elements wrong" in detail
    expected = reference(case_of_values("aten::clone", self=given))
    assert not _not_copied(expected, own, given).any() and not _not_copied(expected, own, own).any()
    assert _not_copied(expected, own, other).tolist() == [False, True, False]


@pytest.mark.parametrize("how", [torch.conj, torch._neg_view])
def test_a_copied_zero_has_its_sign_unless_a_complex_number_is_negated(how):
    target, source = torch.full((3,), 1j), how(torch.full((3,), 0.75 + 0j))
    expected = reference(case_of_values("aten::copy_", self=target.clone(), src=source))
    target.copy_(source)
    for sign in (1, -1):
        answer = torch.complex(target.real, sign * target.imag)
        mismatch = compare("aten::copy_", expected, frozen(self=answer, src=source, **{"return": answer}))
        assert mismatch is None or (sign == -1 and how is torch.conj), mismatch


@pytest.mark.parametrize(("real", "imaginary", "open"), [(math.inf, math.inf, True), (1.0, math.inf, False)])
def test_the_sign_of_an_infinity_beside_nan_is_not_laid_down(real, imaginary, open):
    """C99, annex G.6.2: csinh(inf + i inf) is an infinity of either sign and NaN; sin z is -i sinh iz."""
    z = torch.tensor([complex(real, imaginary)])
    detail = judged("aten::sin", {"self": z}, lambda self: torch.view_as_complex(torch.view_as_real(self.sin()) * -1))
    assert detail is None if open else "wrong" in detail


@pytest.mark.parametrize("other", [100.0, torch.inf])
def test_a_finite_result_beside_infinities_is_as_accurate_as_beside_numbers(other):
    """Errors are relative to the largest result: here 100, the sum of the finite terms."""
    arguments = {"self": torch.tensor([[other, 100.0], [1e-3, 0.0]]), "mat2": torch.ones(2, 1)}
    for error, right in ((1e-6, True), (1e-3, False)):
        detail = judged("aten::mm", arguments, lambda self, mat2, e=error: self @ mat2 + torch.tensor([[0.0], [e]]))
        assert (detail is None) == right, detail


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float32])
def test_a_complex_quotient_by_a_zero_pivot_is_any_infinity_or_nan(dtype):
    arguments = {"A": torch.tensor([[1, 2], [0, 0]], dtype=dtype), "B": torch.ones(2, 1, dtype=dtype)}
    details = {}
    for value in (torch.inf, -torch.inf, torch.nan, 1.0):
        change = lambda A, B, value=value: tuple(  # noqa: E731
            torch.where(t.isfinite(), t, value) if t.dtype is dtype else t for t in torch._linalg_solve_ex(A, B)
        )
        details[value] = judged("aten::_linalg_solve_ex", arguments, change)
    right = [value for value, detail in details.items() if detail is None]
    assert len(right) == (3 if dtype.is_complex else 0), details


def test_where_the_terms_of_a_derivative_vanish_in_aten_its_zero_may_have_the_sign_of_the_true_value():
    """Below -9 the derivative of gelu is negative; ATen adds +0 and -0, and a kernel that loses less rounds to -0."""
    arguments = {"grad_output": torch.ones(2), "self": torch.tensor([-20.0, -200.0]), "approximate": "tanh"}
    assert judged("aten::gelu_backward", arguments, lambda **_: torch.zeros(2)) is None
    assert judged("aten::gelu_backward", arguments, lambda **_: -torch.zeros(2)) is None
    assert "wrong" in judged("aten::gelu_backward", arguments, lambda **_: torch.full((2,), -1e-3))
    assert "wrong" in judged("aten::gelu", {"self": torch.tensor([-200.0])}, lambda **_: torch.zeros(1))


@pytest.mark.parametrize("native", [-0.0, 0.0])
def test_a_zero_has_a_sign_that_aten_gives_it_in_float32_or_in_float64(native):
    """Which of them that is in float32 may be the processor's: the verdict on a right kernel must not be."""
    x = torch.full((3,), -0.0)
    arguments = {"self": x, "approximate": "none"}
    expected = reference(case_of_values("aten::gelu", **arguments))
    assert contents(expected.values, 1).signbit().all()
    expected = replace(expected, native=frozen(**arguments, **{"return": torch.full((3,), native)}))

    def mismatch(zero):
        return compare("aten::gelu", expected, frozen(**arguments, **{"return": torch.full((3,), zero)}))

    assert mismatch(-0.0) is None
    assert (mismatch(0.0) is None) is (math.copysign(1, native) > 0)


def test_zeros_are_no_answer_to_an_ill_conditioned_case():
    matrix = torch.ones(4, 4) + 1e-6 * torch.eye(4)
    assert "wrong" in judged(
        "aten::linalg_inv_ex", {"A": matrix}, lambda A: (torch.zeros(4, 4).t(), torch.zeros((), dtype=torch.int32))
    )


def test_a_bare_kernel_may_copy_what_aten_hands_through():
    """Dropout out of training returns its very input, which no schema tells; views and in-place results are others."""

    def said(overload, answer, strict, **arguments):
        expected = reference(Case("case", overload, "", lambda: frozen(**arguments)))
        fresh = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
        return compare(overload, expected, frozen(**fresh, **{"return": answer(fresh)}), strict)

    dropout = {"input": X, "p": 0.5, "train": False}
    copy = lambda a: next(iter(a.values())).clone()  # noqa: E731
    assert said("aten::dropout", copy, False, **dropout) is None
    assert "must share memory" in said("aten::dropout", copy, True, **dropout).detail
    assert said("aten::t", lambda a: a["self"].t(), False, self=X) is None
    assert "must share memory" in said("aten::t", lambda a: a["self"].t().clone(), False, self=X).detail
    assert said("aten::neg_", lambda a: a["self"].neg_().clone(), False, self=X) is not None


def test_an_exponential_of_integers_may_be_off_as_one_of_numbers():
    """2 to the power of a product that is rounded: half an ulp of it is many of the result."""
    expected = reference(case_of_values("aten::exp", self=torch.tensor([82, 3], dtype=torch.uint8)))
    for error, wrong in ((2e-6, False), (5e-5, True)):
        answer = deepcopy(expected.native)
        result = contents(answer, 1) * torch.tensor([1 + error, 1])
        answer.data[answer.tensors[1].group] = result.numpy().tobytes()
        assert (compare("aten::exp", expected, answer) is not None) is wrong


@pytest.mark.parametrize(
    ("overload", "arguments", "exact"),
    [
        ("aten::sinh", {"self": torch.tensor([89, 2] * 16, dtype=torch.int8)}, [2.244806e38, 3.62686] * 16),
        (
            "aten::special_shifted_chebyshev_polynomial_t.x_scalar",
            {"x": 0.5, "n": torch.tensor([30_001, 30_002, 3], dtype=torch.int16)},
            [0.0, -1.0, 0.0],
        ),
    ],
)
def test_integers_are_judged_by_what_their_numbers_give_in_float64(overload, arguments, exact):
    """ATen's own float32 is infinite for the first number, and off by 1e-3 for the polynomial of degree 30,001."""
    right = torch.tensor(exact)
    assert judged(overload, arguments, lambda **a: right) is None
    assert judged(overload, arguments, lambda **a: resolve(overload)(**a)) is None
    assert "elements wrong" in judged(overload, arguments, lambda **a: right * 1.001 + 0.1)


def test_integers_are_rounded_to_the_dtype_that_aten_computes_in():
    number = 2**30 + 1
    assert judged("aten::sin", {"self": torch.tensor([number, 3])}, lambda self: self.float().sin()) is None
    exact = lambda self: self.double().sin().float()  # noqa: E731
    assert "elements wrong" in judged("aten::sin", {"self": torch.tensor([number, 3])}, exact)


def test_a_dtype_that_a_call_names_is_widened_beside_tensors_of_integers():
    arguments = {"start": 4.3, "end": torch.tensor(-3), "steps": 50, "dtype": torch.bfloat16}
    exact = torch.linspace(4.3, -3, 50, dtype=torch.float64).bfloat16()

    def told(answer):
        return judged("aten::linspace.Scalar_Tensor", arguments, lambda **a: answer)

    assert told(exact) is None
    assert "elements wrong" in told(exact + exact.abs() * 0.02)


@pytest.mark.parametrize("overload", ["aten::_cdist_backward", "aten::_pdist_backward"])
def test_a_gradient_of_the_largest_distance_has_its_reference(overload):
    x, y, largest = torch.randn(3, 1), torch.randn(4, 1), float("inf")
    if overload == "aten::_cdist_backward":
        grad, cdist = torch.randn(3, 4), torch.cdist(x, y, p=largest)
        arguments = {"grad": grad, "x1": x, "x2": y, "p": largest, "cdist": cdist}
        exact = (grad * (x - y.mT).sign()).double().sum(1, keepdim=True)
    else:
        grad = torch.randn(3)
        arguments = {"grad": grad, "self": x, "p": largest, "pdist": torch.pdist(x, largest)}
        i, j = torch.triu_indices(3, 3, 1)
        signed = grad.double().unsqueeze(1) * (x[i] - x[j]).sign()
        exact = torch.zeros(3, 1, dtype=torch.float64).index_add(0, i, signed).index_add(0, j, -signed)
    assert judged(overload, arguments, lambda **a: exact.float()) is None
    assert judged(overload, arguments, lambda **a: torch.zeros_like(x)) is not None


def test_a_result_may_be_the_numbers_of_which_aten_leaves_conjugates_with_their_bit():
    a, b = torch.randn(3, 3, dtype=torch.complex64), torch.randn(3, 3, dtype=torch.complex64)
    arguments = {"A": a, "B": b, "left": False, "check_errors": False}

    def told(change):
        def answer(A, B, left, check_errors):
            result, *others = torch.ops.aten._linalg_solve_ex(A, B, left=left, check_errors=check_errors)
            assert result.is_conj()
            return (change(result), *others)

        return judged("aten::_linalg_solve_ex", arguments, answer)

    assert told(lambda t: t) is told(lambda t: t.resolve_conj()) is None
    assert "elements wrong" in told(lambda t: t.conj().resolve_conj())
