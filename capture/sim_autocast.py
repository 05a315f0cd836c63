"""Autocast on device `sim`: operators that cast their floating-point inputs, and the target dtypes.

The lists are those that PyTorch documents for accelerators (docs/source/amp.rst, "Autocast Op Reference" for CUDA).
Matrix products and attention run in the lower dtype, operators that lose accuracy run in float32, and operators with
several tensors run in the widest dtype among them. Unlike PyTorch's own autocast, there is no cast cache, so a weight
that is used twice is cast twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload

_LOWER = """
    _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution prelu
    addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm chain_matmul linalg_multi_dot lstm_cell
    gru_cell rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention
"""
_FLOAT32 = """
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
    native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss cosine_embedding_loss
    nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss
    multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist
    pdist cdist renorm logsumexp norm softmax log_softmax prod cumprod cumsum sum linalg_vector_norm linalg_matrix_norm
"""
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"
_REFUSED = "binary_cross_entropy"
_KEY = torch._C._dispatch_key_parse("AutocastPrivateUse1")
_LOWERED = (torch.float32, torch.bfloat16, torch.float16)


def install(name: str) -> list[torch.library.Library]:
    """Register the casts for the out-of-tree device `name`. The caller must keep the returned libraries alive."""
    fallback = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")  # type: ignore[no-untyped-call]
    fallback.fallback(torch.library.fallthrough_kernel)  # type: ignore[no-untyped-call]
    aten = torch.library.Library("aten", "IMPL", "AutocastPrivateUse1")  # type: ignore[no-untyped-call]
    policies: list[tuple[str, Callable[[Any], torch.dtype]]] = [
        (_LOWER, lambda values: torch.get_autocast_dtype(name)),
        (_FLOAT32, lambda values: torch.float32),
        (_WIDEST, _widest),
        (_REFUSED, _refuse),
    ]
    for packets, dtype in policies:
        for packet in packets.split():
            for op in _overloads(packet):
                aten.impl(op, partial(_cast_and_call, name, op, dtype))  # type: ignore[no-untyped-call]
    return [fallback, aten]


def _overloads(packet: str) -> list[OpOverload]:
    packet_object = getattr(torch.ops.aten, packet)
    overloads = [getattr(packet_object, overload) for overload in packet_object.overloads()]
    return [op for op in overloads if not any(a.is_out for a in op._schema.arguments)]


def _cast_and_call(device: str, op: OpOverload, dtype: Callable[[Any], torch.dtype], *args: Any, **kwargs: Any) -> Any:
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(_KEY)):
        to = dtype((args, tuple(kwargs.values())))
        if _asks_for_dtype(op, args, kwargs):
            return op(*args, **kwargs)
        return op(*_cast(args, device, to), **{k: _cast(v, device, to) for k, v in kwargs.items()})


def _asks_for_dtype(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if the call states its computation dtype itself, as `sum(dtype=)` does."""
    names = [a.name for a in op._schema.arguments]
    arguments = {**dict(zip(names, args, strict=False)), **kwargs}
    return arguments.get("dtype") is not None


def _cast(value: Any, device: str, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        eligible = value.device.type == device and value.dtype in _LOWERED
        return value.to(dtype) if eligible and value.dtype is not dtype else value
    if isinstance(value, list | tuple):
        return type(value)(_cast(v, device, dtype) for v in value)
    return value


def _widest(values: Any) -> torch.dtype:
    """Return float32 if a tensor has it, or if bfloat16 and float16 are mixed; otherwise the only lowered dtype."""
    dtypes = {t.dtype for t in _tensors(values)} & set(_LOWERED)
    return dtypes.pop() if len(dtypes) == 1 else torch.float32


def _refuse(values: Any) -> torch.dtype:
    raise RuntimeError(
        "binary_cross_entropy is unsafe to autocast: use binary_cross_entropy_with_logits, or leave autocast for it"
    )


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in _tensors(v)] if isinstance(value, list | tuple) else []
