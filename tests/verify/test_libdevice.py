"""The device library of the simulator, against PyTorch's functions of the same meaning."""

import numpy as np
import pytest
import torch

from verify.child.libdevice import FAST_ERRORS, FUNCTIONS

X = torch.tensor(
    [-np.inf, -1e30, -3.5, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 2.5, 8388609.0, 1e30, np.inf, np.nan]
)
OF_TORCH = {
    **{
        name: getattr(torch, name)
        for name in ("tanh", "sin", "acosh", "atan", "expm1", "log1p", "erf", "erfc", "rsqrt")
    },
    **{
        name: getattr(torch, name)
        for name in ("isnan", "isinf", "signbit", "trunc", "ceil", "floor", "lgamma", "log10")
    },
    "finite": torch.isfinite,
    "rint": torch.round,
    "fabs": torch.abs,
    "normcdf": torch.special.ndtr,
    "exp10": lambda x: torch.pow(10.0, x),
    "round": lambda x: torch.copysign((x.abs().double() + 0.5).floor(), x.double()).to(x.dtype),
}
OF_TWO = {"pow": torch.pow, "fmod": torch.fmod, "atan2": torch.atan2, "copysign": torch.copysign, "hypot": torch.hypot}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OF_TORCH)
def test_functions_of_one_number(name):
    got = torch.from_numpy(np.asarray(FUNCTIONS[name](X.numpy())))
    want = OF_TORCH[name](X)
    torch.testing.assert_close(got.to(want.dtype), want, equal_nan=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers(name):
    a, b = (t.reshape(-1) for t in torch.meshgrid(X, X, indexing="ij"))
    got = torch.from_numpy(np.asarray(FUNCTIONS[name](a.numpy(), b.numpy())))
    torch.testing.assert_close(got, OF_TWO[name](a, b), equal_nan=True)


NUMBERS = np.geomspace(1e-3, 30, 200, dtype=np.float32)


@pytest.mark.parametrize("name", [name for name in FAST_ERRORS if name not in ("powf", "fdividef")])
def test_errors_of_fast_functions(name):
    """They are far above a rounding near the function's zero, and small beside the largest result."""
    exact = np.asarray(FUNCTIONS[name[:-1]](NUMBERS.astype(np.float64)))
    errors = FAST_ERRORS[name](exact.astype(np.float32), NUMBERS.astype(np.float64))
    assert (errors > 0).all() and (errors >= np.spacing(np.abs(exact).astype(np.float32))).all()
    assert np.median(errors / np.abs(exact)) < 1e-5
