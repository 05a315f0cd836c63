"""Calls for benchmarks/calls.py of a training step of language models: attention, norms, losses and optimizers.

Sizes are those of the smallest GPT-2 and its like: 12 heads of 64, rows of 1024, a vocabulary of 32,000.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.maker import Maker, Table, blocks


def _heads(m: Maker) -> tuple[torch.Tensor, ...]:
    """Queries, keys and values."""
    return m(8, 12, 1024, 64), m(8, 12, 1024, 64), m(8, 12, 1024, 64)


def _efficient_gradients(m: Maker) -> Any:
    heads = _heads(m)
    out, logsumexp, *state = torch.ops.aten._scaled_dot_product_efficient_attention(*heads, None, True, 0.0, True)
    return torch.randn_like(out), *heads, None, out, logsumexp, *state, 0.0, [True, True, True, False], True


def _flash_gradients(m: Maker) -> Any:
    heads = _heads(m)
    results = torch.ops.aten._scaled_dot_product_flash_attention(*heads, 0.0, True)
    out, logsumexp, *lengths, seed, offset, _ = results
    return torch.randn_like(out), *heads, out, logsumexp, *lengths, 0.0, True, seed, offset


def _cudnn_gradients(m: Maker) -> Any:
    heads = _heads(m)
    results = torch.ops.aten._scaled_dot_product_cudnn_attention(*heads, None, True, 0.0, True)
    out, logsumexp, *lengths, seed, offset, _ = results
    return torch.randn_like(out), *heads, out, logsumexp, seed, offset, None, *lengths, 0.0, True


def _classified(m: Maker) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of 1000 classes, and classes."""
    return m(8192, 1000), m.below(1000, 8192)


def _labelled(m: Maker) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of 1000 labels, and eight of them; -1 ends them."""
    target = m.below(1000, 8192, 1000)
    target[:, 8:] = -1
    return m(8192, 1000), target


def _labelled_gradients(m: Maker) -> Any:
    x, target = _labelled(m)
    _, is_target = torch.ops.aten.multilabel_margin_loss_forward(x, target, 1)
    return m(), x, target, 1, is_target


def _spoken(m: Maker, tensors: bool) -> Any:
    """Log-probabilities of 64 letters at 256 times, and 32 texts of 64 letters; letter 0 is blank."""
    lengths = [[256] * 32, [64] * 32]
    given = [torch.tensor(n, device=m.device) for n in lengths] if tensors else lengths
    return m(256, 32, 64).log_softmax(2), m.below(63, 32, 64) + 1, *given


def _spoken_gradients(m: Maker, tensors: bool) -> Any:
    given = _spoken(m, tensors)
    loss = torch.ops.aten._ctc_loss.Tensor if tensors else torch.ops.aten._ctc_loss.default
    losses, log_alpha = loss(*given)
    return m.unit(32), *given, losses, log_alpha, 0


def _pair(m: Maker) -> tuple[torch.Tensor, ...]:
    """The gradient of a mean, what was predicted and what was wanted."""
    return m(), m(1 << 24), m(1 << 24)


def _steps(m: Maker) -> list[torch.Tensor]:
    return [m.number(4) for _ in blocks(m)]


def _adam(m: Maker, rate: Any) -> Any:
    how = {"lr": rate, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": False}
    return blocks(m), blocks(m), blocks(m), blocks(m.unit), [], _steps(m), {**how, "maximize": False}


def _adagrad(m: Maker, rate: Any) -> Any:
    how = {"lr": rate, "lr_decay": 0.0, "weight_decay": 0.1, "eps": 1e-10, "maximize": False}
    return blocks(m), blocks(m), blocks(m.unit), _steps(m), how


def _sgd(m: Maker, rate: Any) -> Any:
    how = {"lr": rate, "momentum": 0.9, "dampening": 0.0, "weight_decay": 1e-4, "nesterov": False}
    return blocks(m), blocks(m), blocks(m), {**how, "maximize": False, "is_first_step": False}


CALLS: Table = {
    "aten::_scaled_dot_product_efficient_attention": [lambda m: (*_heads(m), None, True, 0.0, True)],
    "aten::_scaled_dot_product_efficient_attention_backward": [_efficient_gradients],
    "aten::native_layer_norm": [lambda m: (m(8192, 1024), [1024], m(1024), m(1024), 1e-5)],
    "aten::native_layer_norm_backward": [
        lambda m: (m(8192, 1024), m(8192, 1024), [1024], m(8192, 1), m.unit(8192, 1), m(1024), m(1024), [True] * 3)
    ],
    "aten::_weight_norm_interface": [lambda m: (m(8192, 1024), m(8192, 1), 0)],
    "aten::_weight_norm_interface_backward": [
        lambda m: (m(8192, 1024), m(8192, 1024), m(8192, 1), m.unit(8192, 1).float(), 0)
    ],
    "aten::glu_backward": [lambda m: (m(8192, 2048), m(8192, 4096), -1)],
    "aten::_softmax": [lambda m: (m(8192, 1024), -1, False), lambda m: (m(2048, 32000), -1, False)],
    "aten::_softmax_backward_data": [lambda m: (m(8192, 1024), m.unit(8192, 1024), -1, m(1).dtype)],
    "aten::_log_softmax": [lambda m: (m(8192, 1024), -1, False), lambda m: (m(2048, 32000), -1, False)],
    "aten::_log_softmax_backward_data": [lambda m: (m(2048, 32000), m(2048, 32000), -1, m(1).dtype)],
    "aten::_safe_softmax": [lambda m: (m(8, 12, 1024, 1024), -1)],
    "aten::nll_loss_forward": [lambda m: (m(8192, 32000), m.below(32000, 8192), None, 1, -100)],
    "aten::nll_loss_backward": [
        lambda m: (m(), m(8192, 32000), m.below(32000, 8192), None, 1, -100, torch.full((), 8192, **m.of))
    ],
    "aten::mse_loss_backward": [lambda m: (*_pair(m), 1)],
    "aten::huber_loss_backward": [lambda m: (*_pair(m), 1, 1.0)],
    "aten::smooth_l1_loss_backward": [lambda m: (*_pair(m), 1, 1.0)],
    "aten::soft_margin_loss_backward": [lambda m: (*_pair(m), 1)],
    "aten::multi_margin_loss": [_classified],
    "aten::multi_margin_loss_backward": [lambda m: (m(), *_classified(m), 1, 1)],
    "aten::multilabel_margin_loss_forward": [lambda m: (*_labelled(m), 1)],
    "aten::multilabel_margin_loss_backward": [_labelled_gradients],
    "aten::_foreach_norm.Scalar": [lambda m: (blocks(m),)],
    "aten::_chunk_cat": [lambda m: (blocks(m), 0, 8)],  # gradients, to be summed over eight devices
    "aten::_fused_adam_": [lambda m: _adam(m, 6e-4)],
    "aten::_fused_adam_.tensor_lr": [lambda m: _adam(m, m.number(6e-4))],
    "aten::_fused_adamw_": [lambda m: _adam(m, 6e-4)],
    "aten::_fused_adamw_.tensor_lr": [lambda m: _adam(m, m.number(6e-4))],
    "aten::_fused_adagrad_": [lambda m: _adagrad(m, 1e-2)],
    "aten::_fused_adagrad_.tensor_lr": [lambda m: _adagrad(m, m.number(1e-2))],
    "aten::_fused_sgd_": [lambda m: _sgd(m, 0.1)],
    "aten::_fused_sgd_.tensor_lr": [lambda m: _sgd(m, m.number(0.1))],
    "aten::_amp_foreach_non_finite_check_and_unscale_": [lambda m: (blocks(m), m.number(0), m.number(0.5))],
}
SINGLE: Table = {
    "aten::_ctc_loss": [lambda m: _spoken(m, False)],
    "aten::_ctc_loss.Tensor": [lambda m: _spoken(m, True)],
    "aten::_ctc_loss_backward": [lambda m: _spoken_gradients(m, False)],
    "aten::_ctc_loss_backward.Tensor": [lambda m: _spoken_gradients(m, True)],
    "aten::_amp_update_scale_": [lambda m: (m.number(65536), m.number(0).to(torch.int32), m.number(0), 2.0, 0.5, 2000)],
}
HALF: Table = {
    "aten::_scaled_dot_product_flash_attention": [lambda m: (*_heads(m), 0.0, True)],
    "aten::_scaled_dot_product_flash_attention_backward": [_flash_gradients],
    "aten::_scaled_dot_product_cudnn_attention": [lambda m: (*_heads(m), None, True, 0.0, True)],
    "aten::_scaled_dot_product_cudnn_attention_backward": [_cudnn_gradients],
}
