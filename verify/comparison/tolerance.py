"""Tolerances against the float64 reference: one table, with a reason in each row."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from verify.operators import group


@dataclass(frozen=True)
class Tolerance:
    """Condition |got - expected| <= atol + rtol * |expected|, with atol = scale * max |expected| over the tensor.

    `reason` explains why the row is not tighter.
    """

    rtol: float
    scale: float
    reason: str


_FP32 = 2.0**-24  # unit roundoff of the dtype in which kernels compute, except for float64
_UNIT = {torch.float64: 2.0**-53, torch.float32: _FP32, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}

# rtol is 2 roundings to the result's dtype, plus the first number of roundings in the compute dtype. scale is the
# second number, in the same roundings.
_GROUPS: dict[str, tuple[float, float, str]] = {
    "exact": (0, 0, "copies, indexing and integer arithmetic round nothing"),
    "pointwise": (14, 0, "a few roundings, and one of exp, log, erf or tanh, accurate to about 4 ulp on a GPU"),
    "accumulate": (64, 32, "sums over up to thousands of terms in fp32, in an order of the kernel's choice"),
}

# In float64 the reference is ATen's own float64, which errs like a kernel: by half a rounding for each term if
# thousands that are similar are added in order, and in some last bits if a function's steps cancel. So the roundings
# above are multiplied by these numbers. Results computed in fp32 are off by 2^29 roundings.
_IN_FLOAT64 = {"pointwise": 32, "accumulate": 128}

NUDGES = 8  # Multiple of the change in results that rounding the arguments causes, if results depend on each other.
ATENS = 4  # multiple of the error that ATen's own float32 has in the same call
# relative to the result, beyond one rounding; with this limit an ill-conditioned case is still meaningful
MOST_NUDGED = 2.0**-6
# relative to the result, in cases so ill-conditioned that only ATen's own float32 shows the attainable accuracy
MOST_AS_ATENS = 0.5
SUM_ROUNDINGS = 16  # relative to the sum of absolute values, in fp32; fewer than the terms, since errors cancel
# relative to the terms of start + i * step: rounding of a number to the dtype, of a product, and of the sum
STEP_ROUNDINGS = 3
# relative to the largest result, in fp32: the error of float64 results that were computed in fp32
SINGLE_ROUNDINGS = 64
FACTOR_ROUNDINGS = 32  # relative to the largest value, for products of factors, and of vectors with length 1
BETWEEN = 2  # multiple of the error in ATen's own answer, if a subgraph has half-precision results between its steps
LEANING = 0.25  # in ulp: mean error away from 0 if results are not rounded to nearest; truncated results have 0.5
LEANS = 512  # minimum inexact results for a mean; right results' mean has a standard deviation of 0.013 ulp


def unit_of(dtype: torch.dtype) -> float:
    """Return the dtype's unit roundoff."""
    return _UNIT[dtype]


def unit(dtype: torch.dtype) -> float:
    """Return the unit roundoff for the dtype in which a kernel computes results with this dtype."""
    return min(_FP32, _UNIT[dtype])


def tolerance(overload: str, dtype: torch.dtype) -> Tolerance:
    """Return the tolerance for (dtype, group); integers and bools are exact in every group."""
    name = group(overload) if dtype in _UNIT else "exact"
    roundings, scale, reason = _GROUPS[name]
    if name == "exact":
        return Tolerance(0.0, 0.0, reason)
    if dtype is torch.float64:
        roundings, scale = (_IN_FLOAT64[name] * n for n in (roundings, scale))
    # One intermediate result is rounded to the same dtype. For attention there are two, with 0.9 roundings of the
    # largest value as measured.
    rounded = 2 if overload.endswith("_attention_backward") else 1
    halves = rounded * _UNIT[dtype] / 2 if name == "accumulate" else 0.0
    return Tolerance(2 * _UNIT[dtype] + roundings * unit(dtype), scale * unit(dtype) + halves, reason)
