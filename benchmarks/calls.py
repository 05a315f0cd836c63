"""Calls as models in production make them, for benchmarks/operators.py: overload by overload, made where they are run.

Element by element: every tensor of 2^14, 2^20 and 2^26 elements, arguments by the schema. Else: rows and columns as
language models have them, images and channels as ResNet-50 and MobileNetV2 do (arXiv:1512.03385, arXiv:1801.04381).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload

from traces.overloads import resolve
from verify.operators import elementwise

SIZES = (1 << 14, 1 << 20, 1 << 26)
Made = tuple[tuple[Any, ...], dict[str, Any]]

# What the schema does not tell of arguments of operators element by element.
_GIVEN: dict[str, dict[str, Any]] = {
    "aten::clamp": {"min": -0.5, "max": 0.5},
    "aten::pow.Tensor_Scalar": {"exponent": 2.5},
    "aten::round.decimals": {"decimals": 2},
    "aten::polygamma": {"n": 1},
    "aten::div.Tensor_mode": {"rounding_mode": "floor"},
    "aten::elu_backward": {"is_result": False, "alpha": 1.0, "scale": 1.0, "input_scale": 1.0},
    "aten::hardtanh_backward": {"min_val": -1.0, "max_val": 1.0},
    "aten::native_dropout": {"p": 0.1, "train": True},
    "aten::leaky_relu_backward": {"self_is_result": False, "negative_slope": 0.01},
    "aten::div.Scalar_mode": {"rounding_mode": "floor"},
}
_WHOLE = ("bitwise_", "gcd", "lcm")  # operators of integers
_SINGLE = ("special_", "polygamma")  # that ATen has no half precision of
_ALIKE = {
    "aten::binary_cross_entropy", "aten::binary_cross_entropy_backward", "aten::binary_cross_entropy_with_logits",
    "aten::elu_backward", "aten::floor_divide", "aten::glu", "aten::hardshrink_backward", "aten::hardsigmoid_backward",
    "aten::hardswish", "aten::hardswish_backward", "aten::hardtanh_backward", "aten::huber_loss",
    "aten::leaky_relu_backward", "aten::log_sigmoid_backward", "aten::log_sigmoid_forward", "aten::mish_backward",
    "aten::mse_loss", "aten::ones_like", "aten::rsub.Tensor", "aten::smooth_l1_loss", "aten::soft_margin_loss",
    "aten::softplus_backward", "aten::softshrink_backward", "aten::sum", "aten::mean", "aten::zeros_like",
    "aten::native_dropout", "aten::clone", "aten::dist", "aten::vdot",
}  # fmt: skip  # all of whose tensors are of one shape, and that are not told as element by element


@dataclass(frozen=True)
class Call:
    """One call. dtype: of its floating tensors. make: its arguments, on a device."""

    overload: str
    dtype: torch.dtype
    make: Callable[[str], Made]

    @property
    def func(self) -> OpOverload:
        return resolve(self.overload)


class Maker:
    """Tensors of one floating dtype on a device."""

    def __init__(self, dtype: torch.dtype, device: str) -> None:
        self._of = {"dtype": dtype, "device": device}
        self.device = device

    def __call__(self, *shape: int) -> torch.Tensor:
        """Normal."""
        return torch.randn(shape, **self._of)

    def unit(self, *shape: int) -> torch.Tensor:
        """Uniform in [0, 1)."""
        return torch.rand(shape, **self._of)

    def below(self, most: int, *shape: int) -> torch.Tensor:
        """Indices from 0."""
        return torch.randint(most, shape, device=self.device)

    def mask(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, device=self.device) < 0.5


def calls(overloads: Sequence[str]) -> Iterator[Call]:
    """Of each overload that this module knows calls of, in fp32 and, of what trainings use, bf16."""
    for overload in overloads:
        lists = any(str(a.type) == "List[Tensor]" for a in resolve(overload)._schema.arguments)
        for dtype in (torch.float32,) if overload[6:].startswith(_SINGLE) else (torch.float32, torch.bfloat16):
            for made in _CALLS.get(overload, ()):
                yield Call(overload, dtype, partial(_made, made, dtype))
            if overload not in _CALLS and not lists and (overload in _ALIKE or elementwise(overload)):
                for n in SIZES:
                    yield Call(overload, dtype, partial(_by_schema, overload, n, dtype))


def _made(arguments: Callable[[Maker], Sequence[Any]], dtype: torch.dtype, device: str) -> Made:
    given = list(arguments(Maker(dtype, device)))
    named = given.pop() if given and isinstance(given[-1], dict) else {}
    return tuple(given), named


def _by_schema(overload: str, n: int, dtype: torch.dtype, device: str) -> Made:
    """Raises LookupError for an argument of which nothing is known."""
    make, stem = Maker(dtype, device), overload.removeprefix("aten::")
    positional, named = [], {}
    for argument in resolve(overload)._schema.arguments:
        kind = str(argument.type)
        if argument.name in _GIVEN.get(overload, {}):
            value = _GIVEN[overload][argument.name]
        elif kind in ("Tensor", "Optional[Tensor]") and not (kind != "Tensor" and argument.has_default_value()):
            value = make.below(1 << 10, n).to(torch.int32) + 1 if stem.startswith(_WHOLE) else make.unit(n)
            value = value < 0.5 if argument.name in ("condition", "mask") else value
        elif argument.name == "device":
            value = device
        elif argument.has_default_value():
            value = argument.default_value
        elif kind in ("number", "float"):
            value = 0.5
        else:
            raise LookupError(f"{overload}: {argument.name} of type {kind}")
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return tuple(positional), named


def _reductions() -> Iterator[tuple[str, list[Callable[[Maker], Sequence[Any]]]]]:
    """Rows and columns of a matrix, few long rows, and everything."""
    lists = ("sum.dim_IntList", "mean.dim", "amax", "amin", "nansum", "logsumexp", "all.dims", "any.dims")
    lists += ("var.correction", "std.correction", "var_mean.correction", "std_mean.correction")
    lists += ("count_nonzero.dim_IntList",)
    single = ("argmax", "argmin", "prod.dim_int", "max.dim", "min.dim", "all.dim", "any.dim")
    for names, dims in ((lists, ([1], [0])), (single, (1, 0))):
        for name in names:
            yield (
                f"aten::{name}",
                [
                    lambda m, d=dims[0]: (m(4096, 4096), d),
                    lambda m, d=dims[1]: (m(4096, 4096), d),
                    lambda m, d=dims[0]: (m(16, 1 << 22), d),
                ],
            )
    for name in ("max", "min", "prod", "all", "any", "equal"):
        yield f"aten::{name}", [lambda m, two=name == "equal": (m(1 << 24),) + ((m(1 << 24),) if two else ())]
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        yield (
            f"aten::{name}",
            [lambda m: (m(4096, 4096), 1), lambda m: (m(4096, 4096), 0), lambda m: (m(1, 1 << 24), 1)],
        )
    yield "aten::linalg_vector_norm", [lambda m: (m(1 << 24), 2), lambda m: (m(4096, 4096), 2, [1])]


def _convolution(m: Maker, size: int, inside: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    x, weight = m(32, inside, size, size), m(out, inside // groups, kernel, kernel)
    pad = kernel // 2
    return x, weight, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups


_IMAGES = (
    (224, 3, 64, 7, 2),
    (56, 64, 64, 3),
    (56, 256, 64, 1),
    (28, 128, 128, 3),
    (14, 256, 256, 3),
    (7, 512, 512, 3),
    (56, 144, 144, 3, 1, 144),
)  # size, channels in and out, kernel, stride, groups


def _convolution_gradients(m: Maker, *how: int) -> Any:
    x, weight, _, stride, pad, dilation, transposed, more, groups = _convolution(m, *how)
    size = (how[0] + 2 * pad[0] - how[3]) // stride[0] + 1
    grad = m(32, how[2], size, size)
    return grad, x, weight, None, stride, pad, dilation, transposed, more, groups, [True, True, False]


def _batch_norm(m: Maker) -> Any:
    return m(32, 256, 56, 56), m(256), m(256), m(256), m.unit(256), True, 0.1, 1e-5


def _batch_norm_gradients(m: Maker) -> Any:
    x = m(32, 256, 56, 56)
    return m(32, 256, 56, 56), x, m(256), m(256), m.unit(256), m(256), m.unit(256), True, 1e-5, [True] * 3


def _pooled(m: Maker, mean: bool) -> Any:
    x, how = m(32, 64, 112, 112), ([3, 3], [2, 2], [1, 1])
    if mean:
        return m(32, 64, 56, 56), x, *how, False, True, None
    out, indices = torch.ops.aten.max_pool2d_with_indices(x, *how)
    return torch.randn_like(out), x, *how, [1, 1], False, indices


_CALLS: dict[str, list[Callable[[Maker], Sequence[Any]]]] = {
    **dict(_reductions()),
    "aten::convolution": [lambda m, how=how: _convolution(m, *how) for how in _IMAGES],
    "aten::convolution_backward": [lambda m, how=how: _convolution_gradients(m, *how) for how in _IMAGES],
    "aten::_native_batch_norm_legit": [_batch_norm],
    "aten::native_batch_norm_backward": [_batch_norm_gradients],
    "aten::native_group_norm": [lambda m: (m(32, 256, 56, 56), m(256), m(256), 32, 256, 3136, 32, 1e-5)],
    "aten::native_layer_norm": [lambda m: (m(8192, 1024), [1024], m(1024), m(1024), 1e-5)],
    "aten::max_pool2d_with_indices": [lambda m: (m(32, 64, 112, 112), [3, 3], [2, 2], [1, 1])],
    "aten::max_pool2d_with_indices_backward": [lambda m: _pooled(m, False)],
    "aten::avg_pool2d": [lambda m: (m(32, 64, 112, 112), [3, 3], [2, 2], [1, 1])],
    "aten::avg_pool2d_backward": [lambda m: _pooled(m, True)],
    "aten::_adaptive_avg_pool2d": [lambda m: (m(32, 2048, 7, 7), [1, 1]), lambda m: (m(32, 256, 56, 56), [7, 7])],
    "aten::upsample_nearest2d": [lambda m: (m(16, 64, 64, 64), [128, 128])],
    "aten::upsample_bilinear2d": [lambda m: (m(16, 64, 64, 64), [128, 128], False)],
    "aten::grid_sampler_2d": [lambda m: (m(16, 64, 64, 64), m.unit(16, 64, 64, 2), 0, 0, False)],
    "aten::reflection_pad2d": [lambda m: (m(16, 64, 128, 128), [3, 3, 3, 3])],
    "aten::constant_pad_nd": [lambda m: (m(16, 64, 128, 128), [1, 1, 1, 1])],
    "aten::_softmax": [lambda m: (m(8192, 1024), -1, False), lambda m: (m(2048, 32000), -1, False)],
    "aten::_log_softmax": [lambda m: (m(8192, 1024), -1, False), lambda m: (m(2048, 32000), -1, False)],
    "aten::mm": [lambda m: (m(4096, 4096), m(4096, 4096))],
    "aten::addmm": [lambda m: (m(4096), m(4096, 1024), m(1024, 4096))],
    "aten::bmm": [lambda m: (m(64, 512, 512), m(64, 512, 512))],
    "aten::baddbmm": [lambda m: (m(64, 512, 512), m(64, 512, 512), m(64, 512, 512))],
    "aten::mv": [lambda m: (m(8192, 8192), m(8192))],
    "aten::addmv": [lambda m: (m(8192), m(8192, 8192), m(8192))],
    "aten::dot": [lambda m: (m(1 << 24), m(1 << 24))],
    "aten::gather": [lambda m: (m(4096, 4096), 1, m.below(4096, 4096, 4096))],
    "aten::scatter.src": [lambda m: (m(4096, 4096), 1, m.below(4096, 4096, 4096), m(4096, 4096))],
    "aten::scatter_add": [lambda m: (m(4096, 4096), 1, m.below(4096, 4096, 4096), m(4096, 4096))],
    "aten::index_select": [lambda m: (m(1 << 16, 256), 0, m.below(1 << 16, 1 << 15))],
    "aten::index_add": [lambda m: (m(1 << 16, 256), 0, m.below(1 << 16, 1 << 15), m(1 << 15, 256))],
    "aten::embedding": [lambda m: (m(50304, 768), m.below(50304, 32, 512))],
    "aten::masked_fill.Scalar": [lambda m: (m(64, 512, 512), m.mask(512, 512), float("-inf"))],
    "aten::masked_select": [lambda m: (m(1 << 22), m.mask(1 << 22))],
    "aten::nonzero": [lambda m: (m.mask(1 << 22),)],
    "aten::take": [lambda m: (m(4096, 4096), m.below(1 << 24, 1 << 22))],
    "aten::flip": [lambda m: (m(4096, 4096), [1])],
    "aten::roll": [lambda m: (m(4096, 4096), [3], [1])],
    "aten::repeat": [lambda m: (m(1024, 1024), [4, 4])],
    "aten::triu": [lambda m: (m(4096, 4096),)],
    "aten::cat": [lambda m: ([m(4096, 1024), m(4096, 2048), m(4096, 1024)], 1)],
    "aten::slice_backward": [lambda m: (m(4096, 2048), [4096, 4096], 1, 0, 2048, 1)],
    "aten::select_backward": [lambda m: (m(64, 4096), [64, 197, 4096], 1, 0)],
    "aten::tril": [lambda m: (m(4096, 4096),)],
    "aten::stack": [lambda m: ([m(1024, 1024)] * 4, 1)],
    "aten::addr": [lambda m: (m(4096, 4096), m(4096), m(4096))],
    "aten::nll_loss_forward": [lambda m: (m(8192, 32000), m.below(32000, 8192), None, 1, -100)],
    "aten::native_layer_norm_backward": [
        lambda m: (m(8192, 1024), m(8192, 1024), [1024], m(8192, 1), m.unit(8192, 1), m(1024), m(1024), [True] * 3)
    ],
    "aten::_softmax_backward_data": [lambda m: (m(8192, 1024), m.unit(8192, 1024), -1, m(1).dtype)],
    "aten::_log_softmax_backward_data": [lambda m: (m(2048, 32000), m(2048, 32000), -1, m(1).dtype)],
    "aten::adaptive_max_pool2d": [lambda m: (m(32, 256, 56, 56), [7, 7])],
    "aten::pixel_shuffle": [lambda m: (m(16, 256, 64, 64), 2)],
    "aten::im2col": [lambda m: (m(16, 64, 64, 64), [3, 3], [1, 1], [1, 1], [1, 1])],
    "aten::index_copy": [lambda m: (m(1 << 16, 256), 0, torch.arange(1 << 15, device=m.device), m(1 << 15, 256))],
    "aten::index.Tensor": [lambda m: (m(1 << 16, 256), [m.below(1 << 16, 1 << 15)])],
    "aten::searchsorted.Tensor": [lambda m: (m(1 << 16).sort().values, m(1 << 20))],
    "aten::bucketize.Tensor": [lambda m: (m(1 << 20), m(256).sort().values)],
    "aten::sort": [lambda m: (m(1 << 24),), lambda m: (m(4096, 4096), 1)],
    "aten::topk": [lambda m: (m(4096, 4096), 64), lambda m: (m(64, 1 << 18), 64)],
}
