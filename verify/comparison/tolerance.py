"""How far a kernel's values may be from the float64 reference: one table, a reason in each row."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from verify.operators import group


@dataclass(frozen=True)
class Tolerance:
    """|got - expected| <= atol + rtol * |expected|, with atol = scale * the largest |expected| of the tensor.

    reason: why this row is not tighter.
    """

    rtol: float
    scale: float
    reason: str


_FP32 = 2.0**-24  # unit roundoff of what kernels compute in, but for float64
_UNIT = {torch.float64: 2.0**-53, torch.float32: _FP32, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}

# rtol = 2 roundings to the result's dtype + the first number of roundings in the dtype that is computed in; scale = the
# second number of these.
_GROUPS: dict[str, tuple[float, float, str]] = {
    "exact": (0, 0, "copies, indexing and integer arithmetic round nothing"),
    "pointwise": (14, 0, "a few roundings, and one of exp, log, erf or tanh, accurate to about 4 ulp on a GPU"),
    "accumulate": (64, 32, "sums over up to thousands of terms in fp32, in an order of the kernel's choice"),
}

NUDGES = 8  # times what a rounding of the arguments makes of the results, where they depend on each other
ATENS = 4  # times the error of ATen's own float32 in the same call
MOST_NUDGED = 2.0**-6  # of the result, beyond one rounding: so an ill-conditioned case still tells something
MOST_AS_ATENS = 0.5  # of the result, in cases so ill-conditioned that only ATen's own float32 says what can be had
SUM_ROUNDINGS = 16  # of the sum of absolute values, in fp32; fewer in number than terms, since errors cancel
STEP_ROUNDINGS = 3  # of the terms of start + i * step: a number's to the dtype, a product's, and the sum's
SINGLE_ROUNDINGS = 64  # of the largest result, in fp32: so far off is float64 that was computed in that
FACTOR_ROUNDINGS = 32  # of the largest value: products of factors, and of vectors of length 1
BETWEEN = 2  # times the error of ATen's own answer, where a subgraph has results in half precision between its steps
LEANING = 0.25  # ulp: the mean error, away from 0, of results that are not rounded to the nearest; cut ones have 0.5
LEANS = 512  # inexact results of which a mean is taken: that of right ones has a standard deviation of 0.013 ulp


def unit_of(dtype: torch.dtype) -> float:
    """Unit roundoff of the dtype."""
    return _UNIT[dtype]


def unit(dtype: torch.dtype) -> float:
    """Unit roundoff of what a kernel computes results of this dtype in."""
    return min(_FP32, _UNIT[dtype])


def tolerance(overload: str, dtype: torch.dtype) -> Tolerance:
    """The tolerance of (dtype, group); integers and bools are exact whatever the group."""
    name = group(overload) if dtype in _UNIT else "exact"
    roundings, scale, reason = _GROUPS[name]
    if name == "exact":
        return Tolerance(0.0, 0.0, reason)
    # an intermediate result rounded to the same dtype; two of attention's, 0.9 roundings of the largest where measured
    rounded = 2 if overload.endswith("_attention_backward") else 1
    halves = rounded * _UNIT[dtype] / 2 if name == "accumulate" else 0.0
    return Tolerance(2 * _UNIT[dtype] + roundings * unit(dtype), scale * unit(dtype) + halves, reason)
