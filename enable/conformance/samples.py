"""Copy tensors and make views for the checks; called while the registration is suspended."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from enable.conformance.answers import WIDE, tensors

T = TypeVar("T")
LOOKED_AT = 48  # samples are chosen among this many per operator


def chosen(items: Iterable[T], most: int, size: Callable[[T], int], elements: int) -> list[T]:
    """Return at most `most` of the first LOOKED_AT items, spread evenly, without items over `elements` elements."""
    small = [item for item in itertools.islice(items, LOOKED_AT) if size(item) <= elements]
    step = max(1, -(-len(small) // most))
    return small[::step]


def elements_of(tree: Any) -> int:
    """Return the number of elements in all tensors of a tree."""
    return sum(t.numel() for t in tensors(tree))


def copied(value: Any) -> Any:
    """Copy a tensor with its strides, offset, bits and requires_grad; return other values unchanged."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout is not torch.strided or value.is_quantized or value.is_nested or torch._is_zerotensor(value):
        return value.detach().clone().requires_grad_(value.requires_grad)
    base = value.detach()
    base = base.conj() if base.is_conj() else base
    base = torch._neg_view(base) if base.is_neg() else base
    copy = torch.empty(0, dtype=base.dtype, device=base.device)
    memory = base.untyped_storage().clone()  # type: ignore[no-untyped-call]
    copy.set_(memory, base.storage_offset(), base.size(), base.stride())
    copy = torch._neg_view(copy) if value.is_neg() else copy
    copy = copy.conj() if value.is_conj() else copy
    return copy.requires_grad_(value.requires_grad)


def rebased(value: Any) -> Any:
    """Copy a tensor with its strides into new memory that begins with its first element."""
    if not plain(value) or torch._is_zerotensor(value) or not value.numel():
        return copied(value)
    base = value.detach()
    base = base.conj() if base.is_conj() else base
    base = torch._neg_view(base) if base.is_neg() else base
    span = 1 + sum((size - 1) * stride for size, stride in zip(base.shape, base.stride(), strict=True))
    memory = base.as_strided((span,), (1,), base.storage_offset()).clone()
    copy = memory.as_strided(base.shape, base.stride(), 0)
    copy = torch._neg_view(copy) if value.is_neg() else copy
    return copy.conj() if value.is_conj() else copy


def widened(value: Any) -> Any:
    """Convert a floating tensor, or its dtype, to float64 or complex128."""
    if isinstance(value, torch.Tensor) and value.dtype in WIDE and value.layout is torch.strided:
        return value.detach().to(wide_of(value.dtype)).requires_grad_(value.requires_grad)
    return wide_of(value) if isinstance(value, torch.dtype) and value in WIDE else value


def wide_of(dtype: torch.dtype) -> torch.dtype:
    """Return complex128 for a complex dtype, else float64."""
    return torch.complex128 if dtype.is_complex else torch.float64


def plain(value: Any) -> bool:
    """Return True for a strided tensor that is neither quantized nor nested, so that views can be made freely."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return False
    return not (value.is_quantized or value.is_nested)


def with_conj(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with the conjugate bit set."""
    return _kept(tensor, tensor.detach().conj_physical().conj()) if tensor.is_complex() else tensor


def with_neg(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with the negative bit set."""
    inexact = tensor.is_floating_point() or tensor.is_complex()
    return _kept(tensor, torch._neg_view(tensor.detach().neg())) if inexact else tensor


def with_both(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with both bits set."""
    if not tensor.is_complex():
        return with_neg(tensor)
    return _kept(tensor, torch._neg_view(tensor.detach().neg().conj_physical().conj()))


def with_offset(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values that begin one element into their storage, so that the pointer is not aligned."""
    base = tensor.detach()
    memory = torch.zeros(base.numel() + 1, dtype=base.dtype, device=base.device)
    view = memory[1:].view(base.shape)
    view.copy_(base)
    return _kept(tensor, view)


def with_stride(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values in every other element of a larger storage; the rest is filled with ones."""
    base = tensor.detach()
    if base.dim() == 0:
        return with_offset(tensor)
    memory = torch.ones((*base.shape, 2), dtype=base.dtype, device=base.device)
    view = memory[..., 1]
    view.copy_(base)
    return _kept(tensor, view)


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with the last two dimensions swapped in memory."""
    base = tensor.detach()
    if base.dim() < 2:
        return with_stride(tensor)
    return _kept(tensor, base.transpose(-1, -2).contiguous().transpose(-1, -2))


def _kept(tensor: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """Return the view with the tensor's requires_grad."""
    return view.requires_grad_(tensor.requires_grad)


def zero_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros without memory, as automatic differentiation makes them."""
    return torch._efficientzerotensor(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def as_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the values in another dtype."""
    return tensor.detach().to(dtype)
