"""How far a kernel's values may be from the float64 reference: one table, a reason in each row."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Tolerance:
    """|got - expected| <= atol + rtol * |expected|, with atol = scale * the largest |expected| of the tensor.

    reason: why this row is not tighter.
    """

    rtol: float
    scale: float
    reason: str


_UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}

# Multiples of the dtype's unit roundoff: (relative to the element, relative to the largest element).
_GROUPS: dict[str, tuple[float, float, str]] = {
    "exact": (0, 0, "copies, indexing and integer arithmetic round nothing"),
    "pointwise": (16, 2, "a few roundings, and one of exp, log, erf or tanh, accurate to about 4 ulp on a GPU"),
    "accumulate": (64, 32, "sums over up to thousands of terms in fp32, in an order of the kernel's choice"),
}

_EXACT = {
    "cat",
    "stack",
    "copy",
    "clone",
    "embedding",
    "arange",
    "ones",
    "zeros",
    "full",
    "fill",
    "zero",
    "scalar_tensor",
}
_POINTWISE = {
    "add", "sub", "mul", "div", "sqrt", "rsqrt", "reciprocal", "clamp", "lerp", "addcmul", "addcdiv", "gelu", "relu",
    "neg", "exp", "abs", "tanh", "sigmoid", "silu", "pow", "where", "threshold", "fused_adamw",
}  # fmt: skip


def group(overload: str) -> str:
    """The row of the table for an overload: operators that are neither copies nor pointwise accumulate."""
    stem = overload.removeprefix("aten::").split(".")[0].strip("_").removeprefix("foreach_").strip("_")
    stem = stem.removesuffix("_backward").removesuffix("_like")
    if stem in _EXACT:
        return "exact"
    return "pointwise" if stem in _POINTWISE else "accumulate"


def tolerance(overload: str, dtype: torch.dtype) -> Tolerance:
    """The tolerance of (dtype, group); integers and bools are exact whatever the group."""
    name = group(overload) if dtype in _UNIT else "exact"
    relative, absolute, reason = _GROUPS[name]
    unit = _UNIT.get(dtype, 0.0)
    return Tolerance(relative * unit, absolute * unit, reason)
