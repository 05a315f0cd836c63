"""Reference answers for overloads that ATen implements on GPUs only, or computes incorrectly on the CPU.

The answers follow the mathematical definitions and are computed on the host, in the case's dtypes.

Attention: see verify/cases/attention.py.

Embedding-bag gradients with `scale_grad_by_freq`: each row's gradient is divided by the number of times that
its index occurs in `indices`. ATen on the CPU (torch 2.13) divides the gradient for the k-th distinct index by
the count for the k-th entry in the sorted list with duplicates.

Antialiased bilinear and bicubic resampling to a width of 1: ATen on the CPU (torch 2.13) is wrong if the height
changes too. Therefore heights are resampled first, as widths in transposed images, and then widths.

Incomplete gamma, polygamma, Bessel and Airy functions: see verify/cases/special_functions.py.

Systems with symmetric factors: ATen on the CPU (torch 2.13) reads past the end of the pivots if their batch is
broadcast.

Least squares: solved with singular values in float64. ATen on the CPU (torch 2.13) passes "gelsy" a permutation
that it never writes, so the rank depends on the memory contents. Without right-hand sides, "gelsd" and "gelss"
fail. There is no answer if a singular value is so close to the limit that algorithms may differ.

Fourier transforms in double precision: computed with NumPy. ATen calls MKL (2024.2), whose error is thirty
times as large for odd lengths: 1e-14 relative to the largest element.

Connectionist temporal classification: ATen on the CPU (torch 2.13) does not write alpha at states beyond a
sequence's labels, nor at steps after its last; nothing reads these elements. No path leads there, so the
reference sets them to log(0) = -inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload

from verify.cases import attention, of_gpus, special_functions
from verify.contract.random_state import Philox


def answer(overload: str, arguments: Mapping[str, Any], philox: Philox) -> Any:
    """Return the overload's result.

    Args:
        overload: Full name of the overload.
        arguments: All arguments by name.
        philox: Seed and offset from which the call draws, unless arguments specify them.

    Raises:
        LookupError: There is no reference for the overload.
    """
    return _ANSWERS[overload](arguments, philox)


def has(overload: str) -> bool:
    """Return True if there is a reference answer for the overload."""
    return overload in _ANSWERS


def settle(overload: str, arguments: Mapping[str, Any], philox: Philox) -> bool:
    """Overwrite arguments in a backward call with the values that a matching forward call produces.

    For attention these are the output, the logsumexp and, with dropout, the generator state `philox`; for CTC
    they are the losses and alpha. The recorded values come from random numbers in another implementation, and
    changed contents imply other forward results.

    Returns:
        True if the call has such arguments, which are then written in place.
    """
    if overload.startswith("aten::_ctc_loss_backward"):
        for name, value in zip(("neg_log_likelihood", "log_alpha"), _ctc_loss(arguments, philox), strict=True):
            arguments[name].copy_(value)
        return True
    if not overload.endswith("_backward") or not has(overload) or "dropout_p" not in arguments:
        return False
    attention.settle(arguments, philox)
    return True


_MAX = 2  # the bag mode that takes the maximum


def _of_bags(op: Callable[..., Tensor], a: Mapping[str, Any]) -> Tensor:
    if not a["scale_grad_by_freq"] or a["mode"] == _MAX or a.get("sparse"):
        return op(**a)
    sums = op(**{**a, "scale_grad_by_freq": False})
    counts = torch.bincount(a["indices"].long(), minlength=len(sums)).clamp(min=1)
    return (sums.to(torch.float64) / counts.unsqueeze(1)).to(sums.dtype)


def _bag_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    return _of_bags(torch.ops.aten._embedding_bag_backward.default, a)


def _dense_bag_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    return _of_bags(torch.ops.aten._embedding_bag_dense_backward.default, a)


def _antialiased(op: OpOverload, a: Mapping[str, Any], philox: Philox) -> Any:
    result = op(**a)
    if a["output_size"][1] != 1:
        return result
    x, (height, _), align = a["self"], a["output_size"], a["align_corners"]
    columns = op(x.transpose(2, 3), [x.shape[3], height], align, None, a["scales_h"]).transpose(2, 3)
    return result.copy_(op(columns, [height, 1], align, None, a["scales_w"]))


def _fourier(op: Callable[..., Tensor]) -> Callable[[Mapping[str, Any], Philox], Any]:
    return lambda a, philox: _transformed(op, a)


def _transformed(op: Callable[..., Tensor], a: Mapping[str, Any]) -> Tensor:
    """Compute a Fourier transform with NumPy, in double precision only.

    The direction is forward unless an argument says otherwise or the result is real. An inverse transform in
    NumPy divides in the norm mode in which a forward transform does not, so the mode is mirrored.
    """
    result = op(**a)
    if result.dtype not in (torch.float64, torch.complex128):
        return result
    norms: list[Any] = ["backward", "ortho", "forward"]
    x, axes = a["self"].numpy(), a["dim"]
    values: Any
    scaled, inverse = norms[min(a["normalization"], 2)], norms[2 - min(a["normalization"], 2)]
    if not result.is_complex():
        values = np.fft.irfftn(x, [result.shape[d] for d in axes], axes, inverse)
    elif a.get("onesided"):
        values = np.fft.rfftn(x, axes=axes, norm=scaled)
    else:
        forward = a.get("forward", True)
        values = np.fft.fftn(x, axes=axes, norm=scaled) if forward else np.fft.ifftn(x, axes=axes, norm=inverse)
    return result.copy_(torch.from_numpy(np.asarray(values)))


def _incomplete_gamma(upper: bool) -> Callable[[Mapping[str, Any], Philox], Any]:
    return lambda a, philox: special_functions.regularized_gamma(a["self"], a["other"], upper)


def _bessel(order: int, second: bool) -> Callable[[Mapping[str, Any], Philox], Any]:
    return lambda a, philox: special_functions.bessel(a["self"], order, second)


def _polygamma(a: Mapping[str, Any], philox: Philox) -> Any:
    return special_functions.polygamma(a["n"], a["self"])


def _airy(a: Mapping[str, Any], philox: Philox) -> Any:
    return special_functions.airy(a["x"])


def _symmetric_solve(a: Mapping[str, Any], philox: Philox) -> Any:
    factors, pivots, b = a["LD"], a["pivots"], a["B"]
    batch = torch.broadcast_shapes(factors.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    if pivots.shape == factors.shape[:-1]:  # otherwise the operator reports the mismatch
        factors, pivots = (t.expand(*batch, *t.shape[-k:]).contiguous() for k, t in ((2, factors), (1, pivots)))
    return torch.ops.aten.linalg_ldl_solve.default(factors, pivots, b, hermitian=a["hermitian"])


def _least_squares(a: Mapping[str, Any], philox: Philox) -> Any:
    matrix, columns, driver = a["self"].double(), a["b"].double(), a["driver"] or "gelsy"
    if driver in ("gelsd", "gelss") and not columns.shape[-1]:
        raise NotImplementedError("there are no right-hand sides")
    results = torch.ops.aten.linalg_lstsq.default(**a)
    solution, residuals, rank, values = results
    columns = columns.unsqueeze(-1) if columns.dim() < matrix.dim() else columns
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    ratio = torch.where(s > 0, s / s[..., :1], 0.0)
    step, size = torch.finfo(a["self"].dtype).eps, max(matrix.shape[-2:])
    share = _share(a["rcond"], driver, step, size)
    counts, margin, gelsy = ratio > share, 16 * step * size, driver == "gelsy"
    ambiguous = (ratio > max(share / 4, 0 if gelsy else share - margin)) & (
        ratio <= share * (100 if gelsy else 1) + margin
    )
    ambiguous |= (ratio <= margin) & (driver == "gels")  # "gels" needs a matrix of full rank
    if bool(ambiguous.any()) or (not gelsy and rank.numel() and not torch.equal(rank, counts.sum(-1))):
        raise NotImplementedError("of which rank the matrix is depends on the algorithm")
    weights = torch.where(counts, 1 / s, 0.0)
    x = vh.mT @ (weights.unsqueeze(-1) * (u.mT @ columns))
    solution.copy_(x.view(solution.shape) if solution.dim() < x.dim() else x)
    if residuals.numel():
        residuals.copy_(((matrix @ x - columns) ** 2).sum(-2))
    if rank.numel() and columns.shape[-1]:
        rank.copy_(counts.sum(-1))
    if values.numel():
        values.copy_(s)
    return results


def _share(rcond: float | None, driver: str, step: float, size: int) -> float:
    """Return the threshold for singular values relative to the largest, as in the LAPACK routine named by `driver`.

    Smaller singular values do not count towards the rank.
    """
    if driver == "gels":
        return 0.0
    if rcond is None:
        return step * size
    replaced = rcond <= 0 or rcond >= 1 if driver == "gelsd" else rcond < 0
    return step / 2 if replaced and driver != "gelsy" else max(rcond, 0.0)


def _ctc_loss(a: Mapping[str, Any], philox: Philox) -> Any:
    op = torch.ops.aten._ctc_loss
    names = "log_probs", "targets", "input_lengths", "target_lengths", "blank", "zero_infinity"
    losses, alpha = _by_lengths(op, a)(**{name: a[name] for name in names})
    steps, labels = (torch.as_tensor(a[name]).flatten() for name in ("input_lengths", "target_lengths"))
    late = torch.arange(alpha.shape[1]).view(1, -1, 1) >= steps.view(-1, 1, 1)
    absent = torch.arange(alpha.shape[2]).view(1, 1, -1) > 2 * labels.view(-1, 1, 1)
    return losses, alpha.masked_fill_(late | absent, -math.inf)


def _ctc_loss_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    return _by_lengths(torch.ops.aten._ctc_loss_backward, a)(**a)


def _by_lengths(op: Any, a: Mapping[str, Any]) -> Any:
    return op.Tensor if isinstance(a["input_lengths"], Tensor) else op.default


_ANSWERS: dict[str, Callable[[Mapping[str, Any], Philox], Any]] = {
    "aten::_embedding_bag_backward": _bag_backward,
    "aten::_embedding_bag_dense_backward": _dense_bag_backward,
    "aten::_upsample_bicubic2d_aa": partial(_antialiased, torch.ops.aten._upsample_bicubic2d_aa.default),
    "aten::_upsample_bilinear2d_aa": partial(_antialiased, torch.ops.aten._upsample_bilinear2d_aa.default),
    "aten::_fft_c2c": _fourier(torch.ops.aten._fft_c2c.default),
    "aten::_fft_c2r": _fourier(torch.ops.aten._fft_c2r.default),
    "aten::_fft_r2c": _fourier(torch.ops.aten._fft_r2c.default),
    "aten::igamma": _incomplete_gamma(False),
    "aten::igammac": _incomplete_gamma(True),
    "aten::linalg_lstsq": _least_squares,
    "aten::linalg_ldl_solve": _symmetric_solve,
    "aten::polygamma": _polygamma,
    "aten::special_airy_ai": _airy,
    "aten::special_bessel_j0": _bessel(0, False),
    "aten::special_bessel_j1": _bessel(1, False),
    "aten::special_bessel_y0": _bessel(0, True),
    "aten::special_bessel_y1": _bessel(1, True),
    "aten::_ctc_loss": _ctc_loss,
    "aten::_ctc_loss.Tensor": _ctc_loss,
    "aten::_ctc_loss_backward": _ctc_loss_backward,
    "aten::_ctc_loss_backward.Tensor": _ctc_loss_backward,
    **attention.ANSWERS,
    **of_gpus.ANSWERS,
}
