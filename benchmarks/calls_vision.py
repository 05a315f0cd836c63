"""Calls for benchmarks/calls.py of operators on images, clips and signals.

Sizes are those of ResNet-50 and MobileNetV2 (arXiv:1512.03385, arXiv:1801.04381), a decoder's that doubles its images,
and an autoencoder's of sounds; tensors of three dimensions have what a network of clips holds after its first layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks.maker import Arguments, Maker, Table

_POOLED = {2: (32, 64, 112, 112), 3: (8, 64, 16, 56, 56)}
_ADAPTED = {2: ((32, 256, 56, 56), [7, 7]), 3: ((8, 64, 16, 56, 56), [8, 7, 7])}
_FRACTIONAL = {2: [79, 79], 3: [11, 39, 39]}  # 0.7 of what is pooled
_SCALED = {1: ((16, 256, 4096), [8192]), 2: ((16, 64, 64, 64), [128, 128]), 3: ((4, 32, 32, 32, 32), [64] * 3)}
_PADDED = {1: ((32, 256, 4096), 3), 2: ((16, 64, 128, 128), 3), 3: ((4, 32, 32, 64, 64), 1)}
_IMAGES = (
    (224, 3, 64, 7, 2, 1),
    (56, 64, 64, 3, 1, 1),
    (56, 256, 64, 1, 1, 1),
    (28, 128, 128, 3, 1, 1),
    (14, 256, 256, 3, 1, 1),
    (7, 512, 512, 3, 1, 1),
    (56, 144, 144, 3, 1, 144),
)  # size, channels in and out, kernel, stride, groups


def _convolution(m: Maker, how: tuple[int, ...]) -> Any:
    size, inside, out, kernel, stride, groups = how
    x, weight = m(32, inside, size, size), m(out, inside // groups, kernel, kernel)
    return x, weight, None, [stride] * 2, [kernel // 2] * 2, [1, 1], False, [0, 0], groups


def _convolution_gradients(m: Maker, how: tuple[int, ...]) -> Any:
    x, weight, _, stride, pad, *more = _convolution(m, how)
    size = (x.shape[2] + 2 * pad[0] - weight.shape[2]) // stride[0] + 1
    grad = m(32, len(weight), size, size)
    return grad, x, weight, None, stride, pad, *more, [True, True, False]


def _normed(m: Maker) -> tuple[torch.Tensor, ...]:
    """Images; weight, bias, running mean and variance of their channels."""
    return m(32, 256, 56, 56), m(256), m(256), m(256), m.unit(256)


def _normed_by_cudnn(m: Maker) -> tuple[torch.Tensor, ...]:
    """Likewise, as cuDNN takes them."""
    return m(32, 256, 56, 56), *_normed(m.single)[1:]


def _batch_norm_gradients(m: Maker) -> Any:
    x = m(32, 256, 56, 56)
    return m(32, 256, 56, 56), x, m(256), m(256), m.unit(256), m(256), m.unit(256), True, 1e-5, [True] * 3


def _updating_gradients(m: Maker) -> Any:
    x, weight, bias, mean, var = _normed(m)
    out, *saved, reserve = torch.ops.aten._batch_norm_with_update(x, weight, bias, mean, var, 0.1, 1e-5)
    return torch.randn_like(out), x, weight, mean, var, *saved, True, 1e-5, [True] * 3, reserve


def _cudnn_gradients(m: Maker) -> Any:
    x, weight, bias, mean, var = _normed_by_cudnn(m)
    out, *saved, reserve = torch.ops.aten.cudnn_batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5)
    return x, torch.randn_like(out), weight, mean, var, *saved, 1e-5, reserve


def _group_norm_gradients(m: Maker) -> Any:
    x, weight, *_ = _normed(m)
    return torch.randn_like(x), x, m(32, 32), m.unit(32, 32), weight, 32, 256, 3136, 32, [True] * 3


def _pooled(m: Maker, d: int) -> Any:
    return m(*_POOLED[d]), [3] * d, [2] * d, [1] * d


def _averaged_gradients(m: Maker, d: int) -> Any:
    x, *how = _pooled(m, d)
    return m(*x.shape[:2], *((n + 1) // 2 for n in x.shape[2:])), x, *how, False, True, None


def _largest_gradients(m: Maker, d: int) -> Any:
    x, *how = _pooled(m, d)
    out, indices = getattr(torch.ops.aten, f"max_pool{d}d_with_indices")(x, *how)
    return torch.randn_like(out), x, *how, [1] * d, False, indices


def _adapted_gradients(m: Maker, d: int) -> Any:
    shape, size = _ADAPTED[d]
    x = m(*shape)
    out, indices = getattr(torch.ops.aten, f"adaptive_max_pool{d}d")(x, size)
    return torch.randn_like(out), x, indices


def _fractional(m: Maker, d: int) -> Any:
    shape = _POOLED[d]
    return m(*shape), [2] * d, _FRACTIONAL[d], m.unit(*shape[:2], d)


def _fractional_gradients(m: Maker, d: int) -> Any:
    x, kernel, size, samples = _fractional(m, d)
    out, indices = getattr(torch.ops.aten, f"fractional_max_pool{d}d")(x, kernel, size, samples)
    return torch.randn_like(out), x, kernel, size, indices


def _unpooled(m: Maker, d: int) -> Any:
    shape = _POOLED[d]
    out, indices = getattr(torch.ops.aten, f"max_pool{d}d_with_indices")(m(*shape), [2] * d, [2] * d)
    return out, indices, shape[2:], *(([2] * d, [0] * d) if d == 3 else ())


def _pooling() -> Iterator[tuple[str, list[Arguments]]]:
    for d, (shape, size) in _ADAPTED.items():
        yield f"aten::avg_pool{d}d", [partial(_pooled, d=d)]
        yield f"aten::avg_pool{d}d_backward", [partial(_averaged_gradients, d=d)]
        yield f"aten::max_pool{d}d_with_indices", [partial(_pooled, d=d)]
        yield f"aten::max_pool{d}d_with_indices_backward", [partial(_largest_gradients, d=d)]
        yield f"aten::adaptive_max_pool{d}d", [partial(_sized, shape=shape, more=[size])]
        yield f"aten::adaptive_max_pool{d}d_backward", [partial(_adapted_gradients, d=d)]
        yield f"aten::fractional_max_pool{d}d", [partial(_fractional, d=d)]
        yield f"aten::fractional_max_pool{d}d_backward", [partial(_fractional_gradients, d=d)]
        yield f"aten::max_unpool{d}d", [partial(_unpooled, d=d)]


def _sized(m: Maker, shape: Sequence[int], more: Sequence[Any]) -> Any:
    return m(*shape), *more


def _resized_gradients(m: Maker, shape: Sequence[int], size: Sequence[int], more: Sequence[Any]) -> Any:
    return m(*shape[:2], *size), size, shape, *more


def _resampling() -> Iterator[tuple[str, list[Arguments]]]:
    """To twice the size, and of an image to what a classifier takes."""
    plain = [f"{name}{d}d" for name in ("upsample_nearest", "_upsample_nearest_exact") for d in _SCALED]
    aligned = ["upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"]
    kinds: list[tuple[str, Sequence[int], Sequence[int], Sequence[Any]]]
    kinds = [(name, *_SCALED[int(name[-2])], []) for name in plain]
    kinds += [(name, *_SCALED[int(name[-2])], [False]) for name in aligned]
    kinds += [(f"_upsample_{kind}2d_aa", (16, 3, 512, 512), [224, 224], [False]) for kind in ("bilinear", "bicubic")]
    for name, shape, size, more in kinds:
        yield f"aten::{name}", [partial(_sized, shape=shape, more=[size, *more])]
        yield f"aten::{name}_backward", [partial(_resized_gradients, shape=shape, size=size, more=more)]


def _padded_gradients(m: Maker, shape: Sequence[int], pad: int) -> Any:
    around = [pad] * 2 * (len(shape) - 2)
    return m(*shape[:2], *(n + 2 * pad for n in shape[2:])), m(*shape), around


def _padding() -> Iterator[tuple[str, list[Arguments]]]:
    for name in ("reflection", "replication"):
        for d, (shape, pad) in _PADDED.items():
            yield f"aten::{name}_pad{d}d", [partial(_sized, shape=shape, more=[[pad] * 2 * d])]
            yield f"aten::{name}_pad{d}d_backward", [partial(_padded_gradients, shape=shape, pad=pad)]


def _segmented(m: Maker) -> Any:
    """Log-probabilities of 21 classes, and classes."""
    return m(8, 21, 512, 512), m.below(21, 8, 512, 512)


CALLS: Table = {
    **dict(_pooling()),
    **dict(_resampling()),
    **dict(_padding()),
    "aten::convolution": [partial(_convolution, how=how) for how in _IMAGES],
    "aten::convolution_backward": [partial(_convolution_gradients, how=how) for how in _IMAGES],
    "aten::_native_batch_norm_legit": [lambda m: (*_normed(m), True, 0.1, 1e-5)],
    "aten::_native_batch_norm_legit.no_stats": [lambda m: (*_normed(m)[:3], True, 0.1, 1e-5)],
    "aten::_native_batch_norm_legit_no_training": [lambda m: (*_normed(m), 0.1, 1e-5)],
    "aten::_batch_norm_with_update": [lambda m: (*_normed(m), 0.1, 1e-5)],
    "aten::native_batch_norm": [lambda m: (*_normed(m), True, 0.1, 1e-5)],
    "aten::native_batch_norm_backward": [_batch_norm_gradients],
    "aten::batch_norm_backward": [_updating_gradients],
    "aten::cudnn_batch_norm": [lambda m: (*_normed_by_cudnn(m), True, 0.1, 1e-5)],
    "aten::cudnn_batch_norm_backward": [_cudnn_gradients],
    "aten::native_group_norm": [lambda m: (*_normed(m)[:3], 32, 256, 3136, 32, 1e-5)],
    "aten::native_group_norm_backward": [_group_norm_gradients],
    "aten::_prelu_kernel": [lambda m: (m(32, 256, 56, 56), m(1, 256, 1, 1))],
    "aten::_prelu_kernel_backward": [lambda m: (m(32, 256, 56, 56), m(32, 256, 56, 56), m(1, 256, 1, 1))],
    "aten::_adaptive_avg_pool2d": [lambda m: (m(32, 2048, 7, 7), [1, 1]), lambda m: (m(32, 256, 56, 56), [7, 7])],
    "aten::_adaptive_avg_pool2d_backward": [
        lambda m: (m(32, 2048, 1, 1), m(32, 2048, 7, 7)),
        lambda m: (m(32, 256, 7, 7), m(32, 256, 56, 56)),
    ],
    "aten::_adaptive_avg_pool3d": [
        lambda m: (m(8, 512, 8, 14, 14), [1, 1, 1]),
        lambda m: (m(8, 64, 16, 56, 56), [8, 7, 7]),
    ],
    "aten::_adaptive_avg_pool3d_backward": [
        lambda m: (m(8, 512, 1, 1, 1), m(8, 512, 8, 14, 14)),
        lambda m: (m(8, 64, 8, 7, 7), m(8, 64, 16, 56, 56)),
    ],
    "aten::grid_sampler_2d": [lambda m: (m(16, 64, 64, 64), m.unit(16, 64, 64, 2), 0, 0, False)],
    "aten::grid_sampler_2d_backward": [
        lambda m: (m(16, 64, 64, 64), m(16, 64, 64, 64), m.unit(16, 64, 64, 2), 0, 0, False, [True, True])
    ],
    "aten::grid_sampler_3d": [lambda m: (m(4, 32, 32, 32, 32), m.unit(4, 32, 32, 32, 3), 0, 0, False)],
    "aten::grid_sampler_3d_backward": [
        lambda m: (m(4, 32, 32, 32, 32), m(4, 32, 32, 32, 32), m.unit(4, 32, 32, 32, 3), 0, 0, False, [True, True])
    ],
    "aten::constant_pad_nd": [lambda m: (m(16, 64, 128, 128), [1, 1, 1, 1])],
    "aten::pixel_shuffle": [lambda m: (m(16, 256, 64, 64), 2)],
    "aten::pixel_unshuffle": [lambda m: (m(16, 64, 128, 128), 2)],
    "aten::channel_shuffle": [lambda m: (m(32, 240, 56, 56), 3)],
    "aten::im2col": [lambda m: (m(16, 64, 64, 64), [3, 3], [1, 1], [1, 1], [1, 1])],
    "aten::col2im": [lambda m: (m(16, 576, 4096), [64, 64], [3, 3], [1, 1], [1, 1], [1, 1])],
    "aten::nll_loss2d_forward": [lambda m: (*_segmented(m), None, 1, -100)],
    "aten::nll_loss2d_backward": [lambda m: (m(), *_segmented(m), None, 1, -100, torch.full((), 8 << 18, **m.of))],
}
