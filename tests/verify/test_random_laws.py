"""What an answer has to be, given its draws."""

import pytest
import torch

from verify.comparison.laws import law_of

X = torch.tensor([[1.0, -2.0, 3.0], [0.0, 5.0, float("inf")]])


def dropout(p, train=True, change=lambda out, mask: None, dtype=torch.float32):
    out, mask = torch.native_dropout(X.to(dtype), p, train)
    change(out, mask)
    arguments = {"input": X.to(dtype), "p": p, "train": train}
    return law_of("aten::native_dropout").wrong(arguments, [out, mask])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("p, train", [(0.0, True), (0.3, None), (0.3, True), (0.3, False), (1.0, True)])
def test_atens_own_dropout_is_lawful(p, train, dtype):
    for _ in range(20):
        assert dropout(p, train, dtype=dtype) == ""


def set_mask(value):
    return lambda out, mask: mask.fill_(value)


@pytest.mark.parametrize(
    "p, train, change, words",
    [
        (0.0, True, lambda out, mask: out.mul_(1.001), "elements that the mask keeps are not input * 1;"),
        (0.0, True, set_mask(False), "elements of probability 0 or 1 that are the other"),
        (1.0, True, lambda out, mask: out.fill_(0.5), "elements that the mask drops are not 0"),
        (1.0, None, set_mask(True), "elements of probability 0 or 1 that are the other"),
        (0.5, True, lambda out, mask: (out.copy_(X * mask), mask[0].fill_(True)), "not input * 2;"),
        (0.5, False, lambda out, mask: out.mul_(2), "not input * 1;"),
    ],
)
def test_unlawful_dropout(p, train, change, words):
    assert words in dropout(p, train, change)


@pytest.mark.parametrize(
    "overload, arguments, result, words",
    [
        ("bernoulli.p", {"p": 0.5}, [0.0, 1.0, 1.0], ""),
        ("bernoulli.p", {"p": 0.5}, [0.0, 2.0, 1.0], "1 of 3 elements that are neither 0 nor 1; the first is 2.0"),
        ("bernoulli.p", {"p": 0.0}, [0.0, 0.0, 1.0], "1 elements of probability 0 or 1 that are the other"),
        ("bernoulli", {"self": torch.tensor([0.0, 1.0, 0.5])}, [0.0, 1.0, 1.0], ""),
        ("bernoulli", {"self": torch.tensor([0.0, 1.0, 0.5])}, [0.0, 0.0, 1.0], "at flat index 1"),
        ("uniform", {"from": 0.0, "to": 1.0}, [0.0, 0.99, 0.5], ""),
        ("uniform", {"from": 0.0, "to": 1.0}, [0.0, 1.0, 0.5], "1 of 3 elements are not in [0, 1); the first is 1.0"),
        ("uniform", {"from": -2.0, "to": 1.0}, [0.0, float("nan"), 0.5], "the first is nan"),
        ("rand", {"size": [3]}, [0.0, 1.5, 0.5], "not in [0, 1)"),
        ("normal_functional", {"mean": 2.0, "std": 0.0}, [2.0, 2.0, 2.0], ""),
        ("normal_functional", {"mean": 2.0, "std": 0.0}, [2.0, 2.5, 2.0], "standard deviation 0 are not the mean"),
        ("randn", {"size": [3]}, [0.0, float("inf"), 2.0], "1 of 3 elements are not finite"),
    ],
)
def test_facts(overload, arguments, result, words):
    said = law_of(f"aten::{overload}").wrong(arguments, [torch.tensor(result)])
    assert (words in said) if words else not said


def test_from_and_to_as_they_are_in_the_dtype():
    law, arguments = law_of("aten::uniform_"), {"from": 1.003, "to": 1.01}
    assert law.wrong(arguments, [torch.tensor([1.0, 1.0078125], dtype=torch.bfloat16)]) == ""
    assert law.wrong(arguments, [torch.tensor([1.015625], dtype=torch.bfloat16)])
    assert law.wrong({"from": 1.0, "to": 1.001}, [torch.tensor([1.0], dtype=torch.bfloat16)]) == ""


def test_no_normal_numbers_may_be_of_any_dtype():
    law, none = law_of("aten::randn"), [torch.randn(0, dtype=torch.int64)]
    assert law.wrong({"size": [0]}, none) == ""
    assert law.sample({"size": [0]}, none).hits.size == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64])
def test_atens_own_numbers_are_lawful(dtype):
    torch.manual_seed(3)
    for overload, result in (("rand", torch.rand(2000, dtype=dtype)), ("randn", torch.randn(2000, dtype=dtype))):
        assert law_of(f"aten::{overload}").wrong({"size": [2000]}, [result]) == ""


@pytest.mark.parametrize(
    "overload, has",
    [
        ("aten::bernoulli_.float", True),
        ("aten::bernoulli.Tensor_out", True),
        ("aten::normal_", True),
        ("aten::normal.Tensor_Tensor", True),
        ("aten::randn_like.generator", True),
        ("aten::native_dropout_backward", False),  # draws nothing
        ("aten::multinomial", True),
        ("aten::random_.from", True),
        ("aten::rrelu_with_noise_", True),
        ("aten::randint_like.low_dtype", True),
        ("aten::binomial", False),
        ("aten::add.Tensor", False),
    ],
)
def test_which_overloads_have_a_law(overload, has):
    assert (law_of(overload) is not None) == has
