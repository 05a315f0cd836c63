"""Reference answers for the fused attention functions of GPUs, forward and backward.

Attention (arXiv:1706.03762, equation 1): O = D(softmax(scale Q K^T + bias)) V. D is dropout: the identity for
dropout_p = 0, and otherwise the rule in `philox.kept`. Half precision is computed in float32 and rounded at the
end, as in fused kernels. Without dropout, the returned random-generator state is 0. The results have the memory
layout that PyTorch's functions for device `meta` define. A causal mask starts in the upper left corner of the
scores. The mask in flash attention ends in the lower right corner, as in its authors' library since release
2.1; for square scores both masks are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from verify.cases.philox import kept
from verify.contract.random_state import Philox


def settle(arguments: Mapping[str, Any], philox: Philox) -> None:
    """Overwrite the arguments of a backward call that a matching forward call produces; see references.settle."""
    if arguments["dropout_p"] > 0:
        seed, offset = (arguments[name].view(torch.int64) for name in ("philox_seed", "philox_offset"))
        for element, word in zip((seed, offset) if seed.dim() == 0 else seed, philox, strict=True):
            element.fill_(word)
    *_, out, lse = _forward(arguments, arguments.get("attn_bias"), philox)
    arguments["out"].copy_(out)
    logsumexp = arguments["logsumexp"]
    (logsumexp.squeeze(3) if logsumexp.dim() > lse.dim() else logsumexp.narrow(2, 0, lse.shape[2])).copy_(lse)


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


ANSWERS: dict[str, Callable[[Mapping[str, Any], Philox], Any]] = {
    "aten::_scaled_dot_product_efficient_attention": _efficient,
    "aten::_scaled_dot_product_cudnn_attention": _cudnn,
    "aten::_scaled_dot_product_flash_attention": _flash,
    "aten::_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "aten::_scaled_dot_product_flash_attention_backward": _flash_backward,
}
