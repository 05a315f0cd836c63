"""Answers of overloads that ATen has for GPUs alone, from their definitions, for the host and in the case's dtypes.

Attention (arXiv:1706.03762, equation 1): O = D(softmax(scale Q K^T + bias)) V, where D is dropout, the identity for
dropout_p = 0, and else as `philox.kept` says. Half precision is computed in float32 and rounded at the end, as fused
kernels do. What a call without dropout says of a random generator is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from verify.philox import kept
from verify.random_state import Philox


def answer(overload: str, arguments: Mapping[str, Any], philox: Philox) -> Any:
    """What the overload returns. arguments: all, by name. philox: where it draws from, unless arguments say it.

    Raises LookupError for an overload that is not here.
    """
    return _ANSWERS[overload](arguments, philox)


def has(overload: str) -> bool:
    """Whether there is an answer here."""
    return overload in _ANSWERS


def settle(overload: str, arguments: Mapping[str, Any], philox: Philox) -> bool:
    """Make the arguments of a backward call those that a forward call leaves: its output, its logsumexp and, where it
    drew from `philox`, the state of the generator. True if there were such to change.

    What was recorded comes of numbers that another implementation drew, and other contents leave other arguments.
    """
    if not overload.endswith("_backward") or not has(overload):
        return False
    if arguments["dropout_p"] > 0:
        seed, offset = (arguments[name].view(torch.int64) for name in ("philox_seed", "philox_offset"))
        for place, word in zip((seed, offset) if seed.dim() == 0 else seed, philox, strict=True):
            place.fill_(word)
    out, lse = _forward(arguments, arguments.get("attn_bias"), philox)
    arguments["out"].copy_(out)
    given = arguments["logsumexp"]
    (given.squeeze(3) if given.dim() > lse.dim() else given.narrow(2, 0, lse.shape[2])).copy_(lse)
    return True


def _forward(a: Mapping[str, Any], bias: Tensor | None, philox: Philox) -> tuple[Tensor, Tensor]:
    """Output [B, H, Tq, D] and logsumexp of the scores [B, H, Tq], infinity where all are masked, wide."""
    q, k, v = map(_wide, (a["query"], a["key"], a["value"]))
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if a["scale"] is None else a["scale"])
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if a["is_causal"]:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
    lse = scores.logsumexp(-1)
    lse = lse.masked_fill(lse == -math.inf, math.inf)
    probabilities = torch.exp(scores - lse.unsqueeze(-1))
    if a["dropout_p"] > 0:
        heads, rows, columns = scores.flatten(0, 1).shape
        stays = torch.from_numpy(kept(philox, (heads, rows, columns), a["dropout_p"])).view_as(scores)
        scale = 1 / (1 - a["dropout_p"]) if a["dropout_p"] < 1 else 0.0
        probabilities = probabilities * stays * scale
    return probabilities @ v, lse


def _as_bthd(x: Tensor) -> Tensor:
    """The same values, lying as [B, T, H, D]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _state(a: Mapping[str, Any], philox: Philox) -> tuple[Tensor, Tensor]:
    """Seed and offset that forward leaves to backward."""
    seed, offset = philox if a["dropout_p"] > 0 else (0, 0)
    return torch.tensor(seed), torch.tensor(offset)


def _efficient(a: Mapping[str, Any], philox: Philox) -> Any:
    out, lse = _forward(a, a["attn_bias"], philox)
    rows = -(-lse.shape[-1] // 32) * 32 if a["compute_log_sumexp"] else 0
    padded = torch.nn.functional.pad(lse, (0, rows - lse.shape[-1]), value=math.inf)
    return _as_bthd(out.to(a["query"].dtype)), padded, *_state(a, philox)


def _cudnn(a: Mapping[str, Any], philox: Philox) -> Any:
    out, lse = _forward(a, a["attn_bias"], philox)
    sizes = (None, None, a["query"].shape[2], a["key"].shape[2])
    return _as_bthd(out.to(a["query"].dtype)), lse.unsqueeze(-1), *sizes, *_state(a, philox), None


def _flash(a: Mapping[str, Any], philox: Philox) -> Any:
    out, lse = _forward(a, None, philox)
    sizes = (None, None, a["query"].shape[2], a["key"].shape[2])
    state = torch.stack(_state(a, philox)).view(torch.uint64)
    unused = torch.zeros((), dtype=torch.uint64)
    return _as_bthd(out.to(a["query"].dtype)), lse, *sizes, state, unused, torch.empty(0, dtype=a["query"].dtype)


def _gradients(a: Mapping[str, Any], grad: Tensor, bias: Tensor | None) -> list[Tensor | None]:
    """Of query, key, value and bias, in their dtypes, None for None."""
    inputs: Sequence[Tensor | None] = [a["query"], a["key"], a["value"], bias]
    leaves: list[Any] = [None if x is None else _wide(x).detach().requires_grad_() for x in inputs]
    wide = {**a, **dict(zip(("query", "key", "value"), leaves, strict=False))}
    with torch.enable_grad():
        out, _ = _forward(wide, leaves[3], _drawn_from(a))
        found = torch.autograd.grad(out, [x for x in leaves if x is not None], _wide(grad))
    given = iter(found)
    return [None if x is None else _as_bthd(next(given).to(x.dtype)) for x in inputs]


def _drawn_from(a: Mapping[str, Any]) -> Philox:
    """What the forward call drew from: flash attention has both in one tensor."""
    seed, offset = (a[name].view(torch.int64) for name in ("philox_seed", "philox_offset"))
    state = torch.stack((seed, offset)) if seed.dim() == 0 else seed
    return int(state[0]), int(state[1])


def _efficient_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    grads = _gradients(a, a["grad_out_"], a["attn_bias"])
    if grads[3] is not None:
        grads[3] = torch.empty_like(a["attn_bias"]).copy_(grads[3])
    return tuple(g if wanted else None for g, wanted in zip(grads, a["grad_input_mask"], strict=True))


def _cudnn_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    return tuple(_gradients(a, a["grad_out"], a["attn_bias"])[:3])


def _flash_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    return tuple(_gradients(a, a["grad_out"], None)[:3])


_ANSWERS: dict[str, Callable[[Mapping[str, Any], Philox], Any]] = {
    "aten::_scaled_dot_product_efficient_attention": _efficient,
    "aten::_scaled_dot_product_cudnn_attention": _cudnn,
    "aten::_scaled_dot_product_flash_attention": _flash,
    "aten::_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "aten::_scaled_dot_product_flash_attention_backward": _flash_backward,
}
