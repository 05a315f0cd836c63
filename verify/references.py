"""Answers of overloads that ATen has for GPUs alone, from their definitions, for the host and in the case's dtypes.

Attention (arXiv:1706.03762, equation 1) with dropout_p = 0: O = softmax(scale Q K^T + bias) V. Half precision is
computed in float32 and rounded at the end, as fused kernels do. What such a call says of a random generator is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def answer(overload: str, arguments: Mapping[str, Any]) -> Any:
    """What the overload returns. arguments: all, by name. Raises LookupError for an overload that is not here."""
    return _ANSWERS[overload](**arguments)


def has(overload: str) -> bool:
    """Whether there is an answer here."""
    return overload in _ANSWERS


def _as_bthd(x: Tensor) -> Tensor:
    """The same values, lying as [B, T, H, D]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _forward(  # noqa: PLR0913 - the operator's
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, is_causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    """Output [B, H, Tq, D] and logsumexp of the scores [B, H, Tq], infinity where all are masked, wide."""
    q, k, v = map(_wide, (query, key, value))
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if is_causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    lse = scores.logsumexp(-1)
    lse = lse.masked_fill(lse == -math.inf, math.inf)
    return torch.exp(scores - lse.unsqueeze(-1)) @ v, lse


def _efficient(  # noqa: PLR0913
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Any:
    out, lse = _forward(query, key, value, attn_bias, is_causal, scale)
    rows = -(-query.shape[2] // 32) * 32 if compute_log_sumexp else 0
    padded = torch.nn.functional.pad(lse, (0, rows - lse.shape[-1]), value=math.inf)
    return _as_bthd(out.to(query.dtype)), padded, *_no_state()


def _cudnn(  # noqa: PLR0913
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float | None,
) -> Any:
    out, lse = _forward(query, key, value, attn_bias, is_causal, scale)
    sizes = (None, None, query.shape[2], key.shape[2])
    return _as_bthd(out.to(query.dtype)), lse.unsqueeze(-1), *sizes, *_no_state(), None


def _no_state() -> tuple[Tensor, Tensor]:
    return torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)


def _gradients(grad: Tensor, inputs: Sequence[Any], is_causal: bool, scale: float | None) -> list[Tensor | None]:
    """Of query, key, value and bias, in their dtypes, None for None."""
    leaves: list[Any] = [None if x is None else _wide(x).detach().requires_grad_() for x in inputs]
    with torch.enable_grad():
        query, key, value, bias = leaves
        out, _ = _forward(query, key, value, bias, is_causal, scale)
        found = torch.autograd.grad(out, [x for x in leaves if x is not None], _wide(grad))
    given = iter(found)
    return [None if x is None else _as_bthd(next(given).to(x.dtype)) for x in inputs]


def _efficient_backward(**a: Any) -> Any:
    inputs = [a["query"], a["key"], a["value"], a["attn_bias"]]
    grads = _gradients(a["grad_out_"], inputs, a["is_causal"], a["scale"])
    if grads[3] is not None:
        grads[3] = torch.empty_like(a["attn_bias"]).copy_(grads[3])
    return tuple(g if wanted else None for g, wanted in zip(grads, a["grad_input_mask"], strict=True))


def _cudnn_backward(**a: Any) -> Any:
    inputs = [a["query"], a["key"], a["value"], a["attn_bias"]]
    return tuple(_gradients(a["grad_out"], inputs, a["is_causal"], a["scale"])[:3])


_ANSWERS: dict[str, Callable[..., Any]] = {
    "aten::_scaled_dot_product_efficient_attention": _efficient,
    "aten::_scaled_dot_product_cudnn_attention": _cudnn,
    "aten::_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
}
