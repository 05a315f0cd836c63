"""References of the judge's own where ATen's are off, and bad answers that are refused by them."""

import math

import numpy as np
import pytest
import torch

from traces.values import pack
from verify.cases import references
from verify.cases.case import case_of_values, reference
from verify.cases.packed import contents
from verify.comparison.compare import compare


def judged(overload, arguments, answer):
    """What is said of an answer to a call; None if it is right."""
    expected = reference(case_of_values(overload, **arguments))
    packed = pack({**arguments, "return": answer})
    packed.data = [None if d is None else bytes(d) for d in packed.data]
    mismatch = compare(overload, expected, packed)
    return mismatch.detail if mismatch else None


@pytest.mark.parametrize("length", [1023, 131])
def test_a_transform_in_double_precision_is_held_to_more_than_the_cpus_own(length):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(length, dtype=torch.complex128, generator=generator)
    arguments = {"self": x, "dim": [0], "normalization": 0, "forward": True}
    right = torch.from_numpy(np.fft.fft(x.numpy()))
    one = torch.zeros_like(right)
    one[length // 2] = 1e-9
    assert judged("aten::_fft_c2c", arguments, right) is None
    for wrong in (right + one, right + 1j * one, right.conj().resolve_conj(), right / length, right.flip(0)):
        assert "elements wrong" in judged("aten::_fft_c2c", arguments, wrong)


def test_half_of_a_transform_of_real_numbers_and_back():
    x = torch.randn(7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    half = torch.from_numpy(np.fft.rfft(x.numpy()))
    forward = {"self": x, "dim": [0], "normalization": 0, "onesided": True}
    back = {"self": half, "dim": [0], "normalization": 2, "last_dim_size": 7}
    assert judged("aten::_fft_r2c", forward, half) is None
    assert "elements wrong" in judged("aten::_fft_r2c", forward, half * (1 + 1e-9))
    assert judged("aten::_fft_c2r", back, x) is None
    assert "elements wrong" in judged("aten::_fft_c2r", back, x * 7)


def test_alpha_of_states_and_steps_that_a_sequence_has_not():
    log_probs = torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    arguments = {
        "log_probs": log_probs,
        "targets": torch.tensor([[1, 2, 3], [2, 2, 1]]),
        "input_lengths": [6, 4],
        "target_lengths": [3, 1],
        "blank": 0,
        "zero_infinity": False,
    }
    expected = reference(case_of_values("aten::_ctc_loss", **arguments)).native
    losses, alpha = (contents(expected, i) for i in (-2, -1))
    by_hand = torch.nn.functional.ctc_loss(**{**arguments, "reduction": "none"})
    assert torch.equal(losses, by_hand)
    assert bool((alpha[1, 4:] == -math.inf).all()) and bool((alpha[1, :, 3:] == -math.inf).all())
    assert bool(alpha[0, 5, 5:].isfinite().all())
    assert judged("aten::_ctc_loss", arguments, (losses, alpha)) is None
    lower = alpha.clone()
    lower[0, 5, 6] -= 0.01
    beyond = alpha.clone()
    beyond[1, 5, 0] = 0.0
    for wrong in ((losses + 0.01, alpha), (losses, lower), (losses, beyond)):
        assert "wrong" in judged("aten::_ctc_loss", arguments, wrong)


def test_systems_with_symmetric_factors_of_a_batch_that_is_broadcast():
    a = torch.randn(2, 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    factors, pivots, _ = torch.linalg.ldl_factor_ex(a)
    b = torch.ones(3, 1, 7, 2, dtype=torch.float64)
    arguments = {"LD": factors, "pivots": pivots, "B": b, "hermitian": False}
    found = references.answer("aten::linalg_ldl_solve", arguments, (0, 0))
    symmetric = a.tril() + a.tril(-1).mT
    assert torch.allclose(symmetric @ found, b.expand(3, 2, 7, 2))


@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss", "gelsy", None])
def test_least_squares(driver):
    generator = torch.Generator().manual_seed(2)
    a, b = torch.randn(2, 6, 4, generator=generator), torch.randn(2, 6, generator=generator)
    solution, residuals, rank, values = references.answer(
        "aten::linalg_lstsq", {"self": a, "b": b, "rcond": None, "driver": driver}, (0, 0)
    )
    want = torch.linalg.pinv(a.double()) @ b.double().unsqueeze(-1)
    assert torch.allclose(solution.double(), want.squeeze(-1), atol=1e-5) and solution.dtype == torch.float32
    assert rank.tolist() == ([] if driver == "gels" else [4, 4])
    assert values.numel() == (8 if driver in ("gelsd", "gelss") else 0)
    if driver in ("gels", "gelsd", "gelss"):
        left = ((a.double() @ want).squeeze(-1) - b).square().sum(-1, keepdim=True)
        assert torch.allclose(residuals.double(), left, rtol=1e-5)


@pytest.mark.parametrize(("rcond", "driver"), [(0.5, "gelsd"), (0.4, "gelsy"), (None, "gels")])
def test_least_squares_where_algorithms_may_differ(rcond, driver):
    a = torch.diag(torch.tensor([1.0, 0.5, 1e-9], dtype=torch.float32))
    arguments = {"self": a, "b": torch.ones(3, 1), "rcond": rcond, "driver": driver}
    with pytest.raises(NotImplementedError, match="rank"):
        references.answer("aten::linalg_lstsq", arguments, (0, 0))
