"""What is known of operators: ATen's own tags first, then exceptions with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from traces.overloads import resolve
from verify.contract.derive import functional_base

# These copy, choose or round to whole numbers: nothing that ATen's tags tell.
_EXACT = {
    "amax", "amin", "aminmax", "cat", "ceil", "clone", "constant_pad_nd", "copy", "copysign", "cummax", "cummin",
    "diag_embed", "embedding", "fill", "flip", "floor", "fmax", "fmin", "full", "gather", "heaviside", "index",
    "index_select", "kthvalue", "masked_fill", "max", "maximum", "min", "minimum", "nan_to_num", "new_full", "new_ones",
    "new_zeros", "nextafter", "ones", "relu", "repeat", "roll", "scalar_tensor", "select", "select_scatter", "sign",
    "slice", "slice_scatter", "sort", "sparse_mask", "stack", "take", "to_copy", "topk", "tril", "triu", "trunc",
    "where", "zero", "zeros",
}  # fmt: skip
# Beside those that ATen tags as pointwise.
_POINTWISE = {
    "amp_foreach_non_finite_check_and_unscale", "amp_update_scale", "arange", "fused_adagrad", "fused_adam",
    "fused_adamw", "fused_sgd",
}  # fmt: skip
# Of ATen's pointwise operators those that are judged by the row for sums: ATen's own float32 is that many times as far
# from its float64 as the row for pointwise ones allows (OpInfo's samples and cases made from these, torch 2.13, CPU).
LAXER = {
    "igamma": "1.8: a series or continued fraction of up to 2000 terms",
    "igammac": "4.2: likewise",
    "polygamma": "1600: a sum of powers, which the reflection formula divides by near the poles",
    "sinc": "159: sin(pi x), where rounding pi x to float32 moves large x by more than an ulp of the result",
    "special_airy_ai": "399: polynomials of products that oscillate",
    "special_bessel_j0": "22: the sine of a phase that is rounded to float32",
    "special_bessel_j1": "45: likewise",
    "special_bessel_y0": "15: likewise",
    "special_bessel_y1": "29: likewise",
    "special_erfcx": "1.6: exp(x * x) where x is negative, x * x being rounded to float32",
    "special_log_ndtr": "1.5: the logarithm of erfcx, likewise",
}
# ATen documents what these do with infinities and NaN, as what copies does; vectorised and plain code agree.
_SPECIAL = {
    "abs", "add", "all", "any", "argmax", "argmin", "atan2", "clamp", "clamp_max", "clamp_min", "eq", "exp", "fmod",
    "frac", "ge", "gt", "hardshrink", "hardsigmoid", "hardtanh", "isclose", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "le", "leaky_relu", "log", "logical_and", "logical_not", "logical_or", "logical_xor",
    "lt", "mul", "nansum", "ne", "neg", "positive", "reciprocal", "relu6", "remainder", "round", "rsqrt", "signbit",
    "softmax", "softshrink", "sqrt", "sub", "sum", "threshold", "xlogy",
}  # fmt: skip
# Their results are sums of terms of either sign; of gelu, x Phi(x) with Phi = (1 + erf) / 2.
_SUMS = {
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "coalesce", "conv1d", "conv2d", "conv3d", "convolution",
    "cumsum", "dot", "embedding_dense", "gelu", "index_add", "inner", "linear", "matmul", "mean", "mm", "mv", "nansum",
    "outer", "scatter_add", "sum", "sum_to_size", "tensordot", "trace", "vdot",
}  # fmt: skip


def group(overload: str) -> str:
    """The row of the table for an overload: operators that are neither copies nor pointwise accumulate."""
    stem = _stem(overload)
    if stem in _EXACT:
        return "exact"
    return "pointwise" if stem not in LAXER and (stem in _POINTWISE or _tagged(overload)) else "accumulate"


@cache
def _tagged(overload: str) -> bool:
    """Whether ATen calls it pointwise, or the functional form of a list's or of one that writes."""
    return any(torch.Tag.pointwise in resolve(o).tags for o in (overload, functional_base(overload)))


def _stem(overload: str) -> str:
    stem = overload.removeprefix("aten::").split(".")[0].strip("_").removeprefix("foreach_").strip("_")
    return stem.removesuffix("_backward").removesuffix("_like")


def judged_as(overload: str, tree: Mapping[str, Any]) -> str:
    """The overload whose row of the table a call falls under, by its packed arguments: its own, but adding sparse rows
    that may be there several times is adding them up."""
    other = tree.get("other")
    sparse = other.get("sparse_coo") if isinstance(other, dict) else None
    return "aten::index_add" if sparse and not sparse["coalesced"] and _stem(overload) in ("add", "sub") else overload


def adds_up(overload: str) -> bool:
    """Whether results are sums of terms of either sign, so that they may be far smaller than these."""
    return _stem(overload) in _SUMS


def elementwise(overload: str) -> bool:
    """Whether each element of the result comes of one element of each argument, as the table or ATen itself says."""
    return group(overload) == "pointwise" or _tagged(overload)


def conditioned(overload: str) -> bool:
    """Whether small errors may grow in between: of operators that are neither copies nor element by element."""
    return group(overload) == "accumulate" and not elementwise(overload)


def takes_special(overload: str) -> bool:
    """Whether it is laid down what the operator answers for infinities and NaN."""
    return overload.removeprefix("aten::").partition(".")[0].strip("_") in _SPECIAL or group(overload) == "exact"
