"""Estimate how far rounding errors move the values of orthogonal polynomials.

The recurrences subtract, so near a root the value is far smaller than its terms. ATen's float64 is then off by a
hundred roundings, and a kernel that contracts a product and a sum differs from it by as much. Absolute values of the
arguments do not bound the terms, because most recurrences subtract for positive arguments, too. Instead the recurrence
runs a few times with random relative errors in each term, and the largest change of the result is the estimate (random
rounding: Parker, Monte Carlo Arithmetic, 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from traces.values import Packed, pack, unpack
from verify.cases.elements import frozen
from verify.contract.random_state import Philox

Array: TypeAlias = npt.NDArray[np.float64]

_STEP = 2.0**-26  # relative error of each term: far above float64's rounding, far below 1
_SAMPLES = 4
_MAX_DEGREE = 256  # the estimate for a higher degree is the value itself
_CHEBYSHEV: dict[str, Callable[[Array], Array]] = {  # the polynomial of degree 1 (DLMF 18.5)
    "t": lambda x: x,
    "u": lambda x: 2 * x,
    "v": lambda x: 2 * x - 1,
    "w": lambda x: 2 * x + 1,
}
_FIRST: dict[str, Callable[[Array], Array]] = {
    **{f"chebyshev_polynomial_{kind}": first for kind, first in _CHEBYSHEV.items()},
    "hermite_polynomial_h": lambda x: 2 * x,
    "hermite_polynomial_he": lambda x: x,
    "laguerre_polynomial_l": lambda x: 1 - x,
    "legendre_polynomial_p": lambda x: x,
}
_WEIGHTS: dict[str, Callable[[Array, int], tuple[Array, float]]] = {  # of the two degrees below (DLMF 18.9)
    **{f"chebyshev_polynomial_{kind}": lambda x, k: (2 * x, 1.0) for kind in _CHEBYSHEV},
    "hermite_polynomial_h": lambda x, k: (2 * x, 2 * k),
    "hermite_polynomial_he": lambda x, k: (x, k),
    "laguerre_polynomial_l": lambda x, k: ((2 * k + 1 - x) / (k + 1), k / (k + 1)),
    "legendre_polynomial_p": lambda x, k: ((2 * k + 1) / (k + 1) * x, k / (k + 1)),
}


def is_polynomial(overload: str) -> bool:
    """Return True for an overload that evaluates an orthogonal polynomial."""
    return _family(overload) in _FIRST


def ask_sizes(ask: Callable[[str, Packed, Philox], Packed], overload: str, packed: Packed, philox: Philox) -> Packed:
    """Return the answer to a call with each value replaced by the estimate, in units of one relative rounding."""
    arguments, answer = unpack(packed), unpack(ask(overload, packed, philox))
    values: torch.Tensor = answer["return"]
    both = [torch.as_tensor(arguments[name], dtype=torch.float64) for name in ("x", "n")]
    operands: Sequence[torch.Tensor] = torch.broadcast_tensors(*both)  # type: ignore[no-untyped-call]
    x, n = (t.numpy().reshape(-1) for t in operands)
    stem = overload.removeprefix("aten::special_")
    argument: Any = 2 * x - 1 if stem.startswith("shifted_") else x
    estimate = torch.from_numpy(_spread(_family(overload), argument, n)).view(operands[0].shape)
    answer["return"] = torch.maximum(values.abs().double(), estimate).to(values.dtype)
    return frozen(pack(answer))


def _family(overload: str) -> str:
    return overload.removeprefix("aten::special_").partition(".")[0].removeprefix("shifted_")


def _spread(family: str, x: Array, n: Array) -> Array:
    """Return the largest change of the values, relative to `_STEP`, over the samples."""
    generator = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        degree = np.where((n > -1) & (n <= _MAX_DEGREE), np.floor(n), 0)
        value = _recurrence(family, x, degree, lambda term: term)
        samples = [
            _recurrence(family, x, degree, lambda term: term * (1 + _STEP * generator.uniform(-1, 1, term.shape)))
            for _ in range(_SAMPLES)
        ]
        changes = np.max([np.abs(sample - value) for sample in samples], 0) / _STEP
        # In (-1, 1) ATen and others evaluate cos(n arccos x) and the like, where the angle is rounded.
        angle = np.pi * degree if family.startswith("chebyshev") else 0.0
        return np.asarray(np.where(np.abs(x) < 1, np.maximum(changes, angle), changes))


def _recurrence(family: str, x: Array, degree: Array, rounded: Callable[[Array], Array]) -> Array:
    """Return the polynomials' values; `rounded` is applied to x and to each term."""
    x = rounded(x)
    before, current = np.ones_like(x), rounded(_FIRST[family](x))
    value = np.where(degree <= 0, before, current)
    for k in range(1, int(degree.max(initial=0))):
        by, minus = _WEIGHTS[family](x, k)
        before, current = current, rounded(by * current) - rounded(minus * before)
        value = np.where(degree == k + 1, current, value)
    return value
