"""What is known of operators: ATen's own tags first, then exceptions with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from traces.overloads import kind, resolve
from traces.subgraphs import is_subgraph, subgraph_of
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
# Of the exact ones those that hand on the bits of what they are given, NaN and zeros of any sign included.
_COPIES = {
    "cat", "clone", "constant_pad_nd", "copy", "diag_embed", "embedding", "flip", "gather", "index", "index_select",
    "masked_fill", "repeat", "roll", "select", "select_scatter", "slice", "slice_scatter", "stack", "take", "tril",
    "triu", "where",
}  # fmt: skip
# The standard of floating-point arithmetic leaves open which of two zeros these choose (IEEE 754-2019, section 9.6), or
# ATen's vectorised and plain code do.
_ANY_ZERO = {
    "amax", "amin", "aminmax", "clamp", "clamp_max", "clamp_min", "cummax", "cummin", "fmax", "fmin", "hardtanh",
    "kthvalue", "max", "maximum", "min", "minimum", "relu", "relu6", "softshrink", "sort", "threshold", "topk",
}  # fmt: skip
# A GPU's exponential is 2 to the power of a product that is rounded, so that its error grows with the argument: half an
# ulp of the product, of up to 128, is 44 ulp of the result. Near a pole the distance from it is what is rounded.
_EXPONENTIAL = {
    "celu", "cosh", "elu", "exp", "exp2", "expm1", "log_sigmoid", "log_sigmoid_forward", "logit", "mish", "selu",
    "sigmoid", "silu", "sinh", "softplus", "special_expit",
}  # fmt: skip
_POLES = {"digamma", "polygamma"}
# Of the mean of numbers that hold an infinity, Welford's algorithm makes NaN, and a sum that is divided the infinity.
_CENTRED = {
    "batch_norm_with_update", "cudnn_batch_norm", "layer_norm", "miopen_batch_norm", "native_batch_norm",
    "native_group_norm", "native_layer_norm", "std", "std_mean", "var", "var_mean",
}  # fmt: skip
# Where an infinity or NaN ends up depends on the order in which a matrix is eliminated, elements of a row are compared,
# or bins are looked for; of a transform, on its factors.
_ELIMINATED = {
    "cholesky", "cholesky_inverse", "cholesky_solve", "fft_c2c", "fft_c2r", "fft_r2c", "geqrf", "histogram",
    "histogramdd", "linalg_cholesky_ex", "linalg_det", "linalg_eig", "linalg_eigh", "linalg_eigvals",
    "linalg_householder_product", "linalg_inv_ex", "linalg_ldl_factor_ex", "linalg_ldl_solve", "linalg_lstsq",
    "linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_matrix_exp", "linalg_pinv", "linalg_qr",
    "linalg_slogdet", "linalg_solve_ex", "linalg_solve_triangular", "linalg_svd", "mode", "ormqr", "triangular_solve",
}  # fmt: skip
# Their results are sums of terms of either sign, or such are among them, as the means of a normalization; of gelu,
# x Phi(x) with Phi = (1 + erf) / 2, of logaddexp, the larger and a logarithm, and of a polynomial, those of the two
# degrees below.
_SUMS = {
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "batch_norm_with_update", "bmm", "coalesce", "conv1d", "conv2d",
    "conv3d", "convolution", "cudnn_batch_norm", "cumsum", "digamma", "dot", "embedding_dense", "gelu", "histogram",
    "histogramdd", "index_add", "inner", "layer_norm", "linear", "logaddexp", "logaddexp2", "matmul", "mean",
    "miopen_batch_norm", "mm", "mv", "nansum", "native_batch_norm", "native_batch_norm_legit",
    "native_batch_norm_legit_functional", "native_group_norm", "native_layer_norm", "outer", "polygamma",
    "scatter_add", "special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w", "special_hermite_polynomial_h",
    "special_hermite_polynomial_he", "special_laguerre_polynomial_l", "special_legendre_polynomial_p",
    "special_shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w", "std_mean", "sum",
    "sum_to_size", "tensordot", "trace", "var_mean", "vdot", "weight_int8pack_mm",
}  # fmt: skip
# Steps of a subgraph that hand errors on about as they are: their slope is nowhere much above 1, or they are products
# with another argument, whose size counts, too.
_GENTLE = {
    "add", "clone", "div", "masked_fill", "mul", "neg", "relu", "sigmoid", "silu", "tanh", "threshold", "to_copy",
    "where",
}  # fmt: skip

_PRODUCTS = {
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "convolution", "dot",
    "grouped_mm", "inner", "linear", "matmul", "mm", "mv", "outer", "tensordot", "vdot", "weight_int8pack_mm",
}  # fmt: skip


@cache
def parts(overload: str) -> tuple[str, ...]:
    """Of a subgraph the overloads of the steps that compute; of any other operator itself."""
    subgraph = subgraph_of(overload)
    steps = [overload] if subgraph is None else [step.overload for step in subgraph.steps]
    return tuple(o for o in steps if subgraph is None or kind(o) != "view")


def group(overload: str) -> str:
    """The row of the table for an overload: operators that are neither copies nor pointwise accumulate. A subgraph has
    the row of the step that rounds; of several, each rounds what it is given by the one before."""
    if is_subgraph(overload):
        rounding = [g for g in map(group, parts(overload)) if g != "exact"]
        return "accumulate" if len(rounding) > 1 else rounding[0] if rounding else "exact"
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
    """Whether results are sums of terms of either sign, so that they may be far smaller than these. So are those of a
    subgraph in which nothing else makes more of an error than there was."""
    stems = set(map(_stem, parts(overload)))
    return bool(stems & _SUMS) and stems <= _SUMS | (_GENTLE if is_subgraph(overload) else set())


def multiplies(overload: str) -> bool:
    """Whether results are sums of products, which tensor cores make of parts of the arguments."""
    return any(_stem(part) in _PRODUCTS for part in parts(overload))


def elementwise(overload: str) -> bool:
    """Whether each element of the result comes of one element of each argument, as the table or ATen itself says."""
    return group(overload) == "pointwise" or (not is_subgraph(overload) and _tagged(overload))


def linear(overload: str) -> bool:
    """Whether the work for each element is the same however many there are: element by element, or to draw it."""
    return elementwise(overload) or kind(resolve(overload)) == "random"


def takes_infinities(overload: str) -> bool:
    """Whether what it answers for infinities and NaN does not depend on the algorithm."""
    return all(_stem(part) not in _CENTRED | _ELIMINATED for part in parts(overload))


def copies(overload: str) -> bool:
    """Whether elements of the result are elements of an argument, to the bit, or constants."""
    return _stem(overload) in _COPIES


def converts(overload: str) -> bool:
    """Whether elements of the result are elements of an argument in another dtype."""
    return _stem(overload) in ("to_copy", "copy")


def signs_zeros(overload: str) -> bool:
    """Whether it is laid down which sign a zero of the result has: of operators element by element and choices."""
    return group(overload) != "accumulate" and not is_subgraph(overload) and _stem(overload) not in _ANY_ZERO


def depends_on_steps(overload: str, arguments: int) -> bool:
    """Whether results of a pointwise operator move with the order of its steps, as they do where terms cancel.

    arguments: how many of them are floating tensors; of one alone the table says it.
    """
    return arguments > 1 or _stem(overload) in _EXPONENTIAL | _POLES


def goes_on_with_results(overload: str) -> bool:
    """Whether it computes further with what it has written, rounded to the dtype of that."""
    return _stem(overload).startswith("fused_")


def conditioned(overload: str) -> bool:
    """Whether small errors may grow in between: of operators that are neither copies nor element by element."""
    return group(overload) == "accumulate" and not elementwise(overload)
