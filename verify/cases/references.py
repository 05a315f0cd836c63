"""Reference answers for overloads that ATen implements on GPUs only, or computes incorrectly on the CPU.

The answers follow the mathematical definitions and are computed on the host, in the case's dtypes.

Attention (arXiv:1706.03762, equation 1): O = D(softmax(scale Q K^T + bias)) V. D is dropout: the identity for
dropout_p = 0, and otherwise the rule in `philox.kept`. Half precision is computed in float32 and rounded at the
end, as in fused kernels. Without dropout, the returned random-generator state is 0. The results have the memory
layout that PyTorch's functions for device `meta` define. A causal mask starts in the upper left corner of the
scores. The mask in flash attention ends in the lower right corner, as in its authors' library since release
2.1; for square scores both masks are equal.

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
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload

from verify.cases import of_gpus, special_functions
from verify.cases.philox import kept
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
    if arguments["dropout_p"] > 0:
        seed, offset = (arguments[name].view(torch.int64) for name in ("philox_seed", "philox_offset"))
        for element, word in zip((seed, offset) if seed.dim() == 0 else seed, philox, strict=True):
            element.fill_(word)
    *_, out, lse = _forward(arguments, arguments.get("attn_bias"), philox)
    arguments["out"].copy_(out)
    logsumexp = arguments["logsumexp"]
    (logsumexp.squeeze(3) if logsumexp.dim() > lse.dim() else logsumexp.narrow(2, 0, lse.shape[2])).copy_(lse)
    return True


_MAX = 2  # the bag mode that takes the maximum


class _Tried(NamedTuple):
    """Intermediate results in a forward attention call.

    Attributes:
        probabilities: [B, H, Tq, Tk], softmax over the scores, in at least float32.
        dropout: [B, H, Tq, Tk], factors that dropout multiplies with the probabilities.
        out: [B, H, Tq, D], the output.
        lse: [B, H, Tq], logsumexp over the scores: infinity if all are masked, and NaN if the largest is
            infinite.
    """

    probabilities: Tensor
    dropout: Tensor
    out: Tensor
    lse: Tensor


def _forward(a: Mapping[str, Any], bias: Tensor | None, philox: Philox) -> _Tried:
    _check(a)
    q, k, v = _headwise(a)
    scores = q @ k.transpose(-1, -2) * _scale(a)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if a["is_causal"]:
        rows, columns = scores.shape[-2:]
        diagonal = 0 if "attn_bias" in a else columns - rows  # only flash attention takes no bias
        scores = scores.masked_fill(~torch.ones(rows, columns, dtype=torch.bool).tril(diagonal), -math.inf)
    lse = scores.logsumexp(-1)
    lse = lse.masked_fill(lse == math.inf, math.nan)
    lse = lse.masked_fill(lse == -math.inf, math.inf)
    probabilities = torch.exp(scores - lse.unsqueeze(-1))
    dropout = torch.ones_like(scores)
    if a["dropout_p"] > 0:
        heads, rows, columns = scores.flatten(0, 1).shape
        stays = torch.from_numpy(kept(philox, (heads, rows, columns), a["dropout_p"])).view_as(scores)
        dropout = dropout * stays * (1 / (1 - a["dropout_p"]) if a["dropout_p"] < 1 else 0.0)
    return _Tried(probabilities, dropout, (probabilities * dropout) @ v, lse)


def _headwise(a: Mapping[str, Any]) -> list[Tensor]:
    """Return query, key and value in at least float32.

    Key and value heads are repeated for each query head that shares them.
    """
    q, k, v = (_wide(a[name]) for name in ("query", "key", "value"))
    share = q.shape[1] // max(k.shape[1], 1)
    return [q, *(x.repeat_interleave(share, 1) if share > 1 else x for x in (k, v))]


def _check(a: Mapping[str, Any]) -> None:
    """Raise RuntimeError for mismatched sizes or dtypes, as ATen's GPU functions do."""
    dtypes = {a[name].dtype for name in ("query", "key", "value")}
    if len(dtypes) > 1 or not all(dtype.is_floating_point for dtype in dtypes):
        raise RuntimeError(f"query, key and value of {', '.join(sorted(map(str, dtypes)))}")
    q, k, v = (a[name].shape for name in ("query", "key", "value"))
    results = [a[name].shape for name in ("out", "grad_out", "grad_out_") if name in a]
    fits = len(q) == len(k) == len(v) == 4 and q[0] == k[0] and k[:2] == v[:2] and q[3] == k[3] and k[2] == v[2]
    shares = "return_debug_mask" in a or "grad_out" in a  # efficient attention does not share heads
    fits = fits and (q[1] == k[1] or (shares and k[1] > 0 and q[1] % k[1] == 0))
    fits &= "attn_bias" in a or q[3:] == v[3:]  # flash attention takes no bias
    if "logsumexp" in a:
        # The efficient forward call pads rows to a multiple of 32.
        rows = -(-q[2] // 32) * 32 if "grad_out_" in a else q[2]
        fits &= a["logsumexp"].shape[:3] == (*q[:2], rows) and a["logsumexp"].shape[3:] in ((), (1,))
    if not fits or any(shape != (*q[:3], v[3]) for shape in results):
        raise RuntimeError(f"query {list(q)} with key {list(k)}, value {list(v)} and {list(map(list, results))}")


def _scale(a: Mapping[str, Any]) -> float:
    return float(1 / math.sqrt(max(a["query"].shape[-1], 1)) if a["scale"] is None else a["scale"])


def _as_bthd(x: Tensor) -> Tensor:
    """Return the same values, stored in memory as [B, T, H, D]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def _as(like: Tensor, x: Tensor) -> Tensor:
    """Return the values in the dtype and memory layout of `like`."""
    result = torch.empty_like(like)
    if x.shape != like.shape:
        order = sorted(range(4), key=like.stride().__getitem__, reverse=True)
        result = torch.empty_permuted(x.shape, order, dtype=like.dtype)
    return result.copy_(x)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _state(a: Mapping[str, Any], philox: Philox) -> tuple[Tensor, Tensor]:
    """Return the seed and offset that the forward call passes to the backward call."""
    seed, offset = philox if a["dropout_p"] > 0 else (0, 0)
    return torch.tensor(seed), torch.tensor(offset)


def _efficient(a: Mapping[str, Any], philox: Philox) -> Any:
    *_, out, lse = _forward(a, a["attn_bias"], philox)
    rows = -(-lse.shape[-1] // 32) * 32 if a["compute_log_sumexp"] else 0
    padded = torch.nn.functional.pad(lse, (0, rows - lse.shape[-1]), value=math.inf)
    return _as_bthd(out.to(a["query"].dtype)), padded, *_state(a, philox)


def _cudnn(a: Mapping[str, Any], philox: Philox) -> Any:
    *_, out, lse = _forward(a, a["attn_bias"], philox)
    sizes = (None, None, a["query"].shape[2], a["key"].shape[2])
    return _as(a["query"], out), lse.unsqueeze(-1), *sizes, *_state(a, philox), None


def _flash(a: Mapping[str, Any], philox: Philox) -> Any:
    if a["return_debug_mask"]:
        raise NotImplementedError("what the mask looks like is not laid down")
    *_, out, lse = _forward(a, None, philox)
    sizes = (None, None, a["query"].shape[2], a["key"].shape[2])
    state = torch.stack(_state(a, philox)).view(torch.uint64)
    unused = torch.zeros((), dtype=torch.uint64)
    return _as(a["query"], out), lse, *sizes, state, unused, torch.empty(0, dtype=a["query"].dtype)


def _gradients(a: Mapping[str, Any], grad: Tensor, bias: Tensor | None) -> list[Tensor]:
    """Return the gradients for query, key, value and scores, in at least float32.

    The formulas are those in arXiv:2205.14135, appendix B.4. They use the rounded output from the arguments, as
    fused kernels do.
    """
    forward = _forward(a, bias, _drawn_from(a))
    q, k, v = _headwise(a)
    out, grad = _wide(a["out"]), _wide(grad)
    of_probabilities = grad @ v.transpose(-1, -2) * forward.dropout
    of_scores = forward.probabilities * (of_probabilities - (grad * out).sum(-1, keepdim=True))
    of_value = (forward.probabilities * forward.dropout).transpose(-1, -2) @ grad
    of_key = of_scores.transpose(-1, -2) @ q * _scale(a)
    batch, heads, rows = a["key"].shape[:3]
    shape = batch, heads, q.shape[1] // max(heads, 1), rows
    of_shared = [x.reshape(*shape, x.shape[3]).sum(2) for x in (of_key, of_value)]
    return [of_scores @ k * _scale(a), *of_shared, of_scores]


def _typed_gradients(a: Mapping[str, Any], grad: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Return the gradients for query, key and value in their dtypes and memory layouts."""
    inputs = a["query"], a["key"], a["value"]
    return tuple(_as(x, g) for x, g in zip(inputs, _gradients(a, grad, bias), strict=False))


def _drawn_from(a: Mapping[str, Any]) -> Philox:
    """Return the seed and offset from which the forward call drew. Flash attention stores both in one tensor."""
    seed, offset = (a[name].view(torch.int64) for name in ("philox_seed", "philox_offset"))
    state = torch.stack((seed, offset)) if seed.dim() == 0 else seed
    return int(state[0]), int(state[1])


def _efficient_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    *gradients, of_bias = _gradients(a, a["grad_out_"], a["attn_bias"])
    grads: list[Tensor | None] = [_as_bthd(g.to(a["query"].dtype)) for g in gradients]
    if (bias := a["attn_bias"]) is not None:
        of_bias = torch.empty_like(bias).copy_(of_bias.sum_to_size(bias.shape))
    grads.append(None if bias is None else of_bias)
    return tuple(g if wanted else None for g, wanted in zip(grads, a["grad_input_mask"], strict=True))


def _cudnn_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    return _typed_gradients(a, a["grad_out"], a["attn_bias"])


def _flash_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    return _typed_gradients(a, a["grad_out"], None)


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
    "aten::_scaled_dot_product_efficient_attention": _efficient,
    "aten::_scaled_dot_product_cudnn_attention": _cudnn,
    "aten::_scaled_dot_product_flash_attention": _flash,
    "aten::_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "aten::_scaled_dot_product_flash_attention_backward": _flash_backward,
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
    **of_gpus.ANSWERS,
}
