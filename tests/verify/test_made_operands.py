"""Cases with operands that lie, or hold, what the samples of an operator do not: gaps, bits, zeros and infinities."""

import functools
from pathlib import Path

import pytest
import torch
from corpus import replaced

from traces.values import pack, unpack
from verify.cases.case import case_of_values, reference
from verify.cases.extended import extended
from verify.cases.samples import opinfo_cases
from verify.comparison.compare import compare
from verify.contract.derive import Plan
from verify.judging.candidate import read_candidate
from verify.judging.job import Job
from verify.lint import load_profile
from verify.outcome import Outcome


@functools.cache
def made(overload, dtype="float32"):
    return [(v.how, v.case) for v in extended(opinfo_cases([overload], (dtype,)), 1, "BLOCK = 32", 128)]


def arguments_of(overload, dtype="float32"):
    return [(how, unpack(case.load())) for how, case in made(overload, dtype)]


def test_biases_have_gaps_and_are_expanded_in_every_number_of_dimensions():
    found = [a for _, a in arguments_of("aten::convolution") if a["bias"] is not None and a["bias"].numel() > 1]
    alone = [a for a in found if a["input"].is_contiguous() and a["weight"].is_contiguous()]
    for stride in (2, 0):
        assert {a["input"].dim() for a in alone if a["bias"].stride() == (stride,)} == {3, 4, 5}


@pytest.mark.parametrize("overload, vector", [("aten::native_layer_norm", "weight"), ("aten::addmv", "vec")])
def test_vectors_beside_others_have_gaps(overload, vector):
    found = [a[vector] for how, a in arguments_of(overload) if vector in how]
    strides = {t.stride() for t in found if t is not None}
    assert strides >= {(2,), (0,)}


def test_complex_divisors_are_zero_and_infinite():
    divisors = [a["other"] for _, a in arguments_of("aten::div.Tensor", "complex64")]
    parts = [torch.view_as_real(d) for d in divisors if d.is_complex() and d.numel()]
    assert any(bool((p == 0).all(-1).any()) for p in parts) and any(bool(p.isinf().any()) for p in parts)


def test_a_quotient_by_scaling_alone_is_wrong():
    """(a + bi) / (c + di) with c scaled to 1: NaN for a divisor of 0, and for an infinite one."""
    wrong = 0
    for how, case in made("aten::div.Tensor", "complex64"):
        if "complex" in how and "," not in how:
            a, b = unpack(case.load()).values()
            if not b.is_complex() or not a.is_complex():
                continue
            size = torch.view_as_real(b).abs().amax(-1)
            scaled = b / size
            quotient = a * scaled.conj() / (scaled.real**2 + scaled.imag**2) / size
            answer = pack({"self": a, "other": b, "return": quotient})
            wrong += compare("aten::div.Tensor", reference(case), answer) is not None
    assert wrong


def test_operands_share_memory_where_atens_answer_is_defined():
    def of(overload):
        return {how: a for how, a in arguments_of(overload) if "," not in how}

    both = of("aten::add.Tensor")["other is self"]
    assert both["self"].data_ptr() == both["other"].data_ptr()
    views = of("aten::add.Tensor")["other overlaps self"]
    assert views["other"].data_ptr() - views["self"].data_ptr() == views["self"].element_size()
    twice = [how for how, _ in arguments_of("aten::add.Tensor") if ", " in how]
    assert twice and not any("is self" in how for how in twice)  # a second change would give each its own memory
    in_place = of("aten::addcmul_")
    assert {"tensor1 is self", "tensor2 is self", "tensor2 is tensor1"} <= in_place.keys()
    assert not any("overlaps" in how for how in in_place)
    assert {"out is self", "out is other"} <= of("aten::add.out").keys()
    assert len({t.data_ptr() for t in of("aten::cat")["tensors of one tensor"]["tensors"]}) == 1
    assert not any(" is " in how for how in of("aten::index_add_"))  # ATen reads what it has already written


NEGATED_FIRST = """
@triton.jit
def kernel(s_ptr, a_ptr, b_ptr, n, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    s = -tl.load(s_ptr + i, mask=mask)
    tl.store(s_ptr + i, s, mask=mask)
    product = tl.load(a_ptr + i, mask=mask) * tl.load(b_ptr + i, mask=mask)
    tl.store(s_ptr + i, value * product - s, mask=mask)


def wrapper(self, tensor1, tensor2, *, value=1):
    n = self.numel()
    kernel[(triton.cdiv(n, 64),)](self, tensor1, tensor2, n, value, BLOCK=64)
    return self
"""


@pytest.mark.parametrize("negated_first", [True, False])
def test_a_kernel_that_writes_a_shared_operand_too_early_is_wrong(judge, negated_first):
    source = (
        NEGATED_FIRST if negated_first else replaced(NEGATED_FIRST, ("    tl.store(s_ptr + i, s, mask=mask)\n", ""))
    )
    profile = load_profile("triton-cuda")
    kernel = read_candidate(source, Path("addcmul_.py"), profile, "aten::addcmul_").kernel
    cases = {how: case for how, case in made("aten::addcmul_") if " is " in how and "," not in how}
    verdicts = judge.judge([Job(Plan("aten::addcmul_", "aten::addcmul_"), kernel, tuple(cases.values()))])
    outcomes = {how: verdicts["aten::addcmul_", case.id].outcome for how, case in cases.items()}
    of_self = Outcome.WRONG if negated_first else Outcome.PASS
    assert outcomes == {"tensor1 is self": of_self, "tensor2 is self": of_self, "tensor2 is tensor1": Outcome.PASS}


FACTORS = {
    "aten::addcmul": ("value", "tensor1"),
    "aten::add.Tensor": ("alpha", "other"),
}


@pytest.mark.parametrize("overload", FACTORS)
def test_a_factor_of_zero_meets_what_is_not_finite(overload):
    factor, name = FACTORS[overload]
    found = [a for how, a in arguments_of(overload) if a[factor] == 0 and how.startswith(f"{factor} 0")]
    assert any(a[name].isnan().all() for a in found if a[name].numel())


@pytest.mark.parametrize("overload", ["aten::addmm", "aten::baddbmm"])
def test_a_matrix_product_times_zero_is_finite(overload):
    """BLAS may leave such a product out, and ATen does so for some sizes alone."""
    found = [a for _, a in arguments_of(overload) if a["alpha"] == 0]
    assert found
    assert all(t.isfinite().all() for a in found for name, t in a.items() if name.startswith(("mat", "batch")))


def test_alpha_of_zero_is_not_multiplied_by_nan():
    """ATen's answer is beta * self, in float32 and float64."""
    x = torch.ones(3, 3)
    arguments = {"self": x, "mat1": x * torch.nan, "mat2": x, "beta": 1, "alpha": 0}
    case = case_of_values("aten::addmm", **arguments)
    for answer, is_right in ((x.clone(), True), (x * torch.nan, False)):
        assert (compare("aten::addmm", reference(case), pack({**arguments, "return": answer})) is None) == is_right


BITS = {
    "aten::mm": "conj",
    "aten::clone": "conj neg",
    "aten::dot": "conj",
    "aten::addmm": "conj",
    "aten::mul.Tensor": "",
}


@pytest.mark.parametrize("overload", BITS)
def test_operators_that_see_bits_have_cases_with_them(overload):
    found = [t for _, a in arguments_of(overload, "complex64") for t in a.values() if isinstance(t, torch.Tensor)]
    bits = {"conj"} if any(t.is_conj() for t in found) else set()
    bits |= {"neg"} if any(t.is_neg() for t in found) else set()
    assert bits == set(BITS[overload].split())


def test_the_negative_bit_of_real_numbers_reaches_the_answer():
    x = torch.randn(3, 4)
    case = case_of_values("aten::clone", self=torch._neg_view(x), memory_format=None)
    given = unpack(case.load())
    assert given["self"].is_neg()
    for answer, is_right in ((-x, True), (x.clone(), False)):
        got = pack({**given, "return": answer})
        assert (compare("aten::clone", reference(case), got) is None) == is_right


@pytest.mark.parametrize("overload", ["aten::sum.IntList_out", "aten::prod.int_out", "aten::cumsum.out"])
def test_reductions_write_results_of_other_dtypes(overload):
    given = [unpack(case.load()) for case in opinfo_cases([overload], ("float32",))]
    assert {a["out"].dtype for a in given if a["dim"] is not None} >= {torch.float32, torch.float64}


def test_a_sum_that_is_rounded_before_it_is_written_is_wrong():
    x = torch.tensor([1e8, 1, -1e8])
    arguments = {"self": x, "dim": [0], "keepdim": False, "dtype": None, "out": torch.zeros((), dtype=torch.float64)}
    case = case_of_values("aten::sum.IntList_out", **arguments)
    for value, is_right in ((1.0, True), (0.0, False)):
        result = torch.tensor(value, dtype=torch.float64)
        answer = pack({**arguments, "out": result, "return": result})
        assert (compare("aten::sum.IntList_out", reference(case), answer) is None) == is_right
