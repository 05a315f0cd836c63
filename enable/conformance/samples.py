"""Copies and views of tensors that checks are made of; called while the registration is suspended."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from enable.conformance.answers import WIDE, tensors

T = TypeVar("T")
LOOKED_AT = 48  # samples of an operator among which some are chosen


def chosen(items: Iterable[T], most: int, size: Callable[[T], int], elements: int) -> list[T]:
    """Return at most `most` of the first items, spread evenly; none of more than `elements` elements."""
    small = [item for item in itertools.islice(items, LOOKED_AT) if size(item) <= elements]
    step = max(1, -(-len(small) // most))
    return small[::step]


def elements_of(tree: Any) -> int:
    """Return the number of elements of all tensors of a tree."""
    return sum(t.numel() for t in tensors(tree))


def copied(value: Any) -> Any:
    """Return a copy of a tensor with the same strides, offset, bits and requires_grad; other values as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout is not torch.strided or value.is_quantized or value.is_nested or torch._is_zerotensor(value):
        return value.detach().clone().requires_grad_(value.requires_grad)
    bare = value.detach()
    bare = bare.conj() if bare.is_conj() else bare
    bare = torch._neg_view(bare) if bare.is_neg() else bare
    new = torch.empty(0, dtype=bare.dtype, device=bare.device)
    memory = bare.untyped_storage().clone()  # type: ignore[no-untyped-call]
    new.set_(memory, bare.storage_offset(), bare.size(), bare.stride())
    new = torch._neg_view(new) if value.is_neg() else new
    new = new.conj() if value.is_conj() else new
    return new.requires_grad_(value.requires_grad)


def rebased(value: Any) -> Any:
    """Return a copy of a tensor with the same strides in memory of its own that begins with its first element."""
    if not plain(value) or torch._is_zerotensor(value) or not value.numel():
        return copied(value)
    bare = value.detach()
    bare = bare.conj() if bare.is_conj() else bare
    bare = torch._neg_view(bare) if bare.is_neg() else bare
    span = 1 + sum((size - 1) * stride for size, stride in zip(bare.shape, bare.stride(), strict=True))
    room = bare.as_strided((span,), (1,), bare.storage_offset()).clone()
    new = room.as_strided(bare.shape, bare.stride(), 0)
    new = torch._neg_view(new) if value.is_neg() else new
    return new.conj() if value.is_conj() else new


def widened(value: Any) -> Any:
    """Return a floating tensor, or the name of its dtype, in float64 or complex128."""
    if isinstance(value, torch.Tensor) and value.dtype in WIDE and value.layout is torch.strided:
        return value.detach().to(wide_of(value.dtype)).requires_grad_(value.requires_grad)
    return wide_of(value) if isinstance(value, torch.dtype) and value in WIDE else value


def wide_of(dtype: torch.dtype) -> torch.dtype:
    return torch.complex128 if dtype.is_complex else torch.float64


def plain(value: Any) -> bool:
    """Return True for a tensor of which views can be made freely."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return False
    return not (value.is_quantized or value.is_nested)


def with_conj(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with the conjugate bit."""
    return _kept(tensor, tensor.detach().conj_physical().conj()) if tensor.is_complex() else tensor


def with_neg(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with the negative bit."""
    inexact = tensor.is_floating_point() or tensor.is_complex()
    return _kept(tensor, torch._neg_view(tensor.detach().neg())) if inexact else tensor


def with_both(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with both bits."""
    if not tensor.is_complex():
        return with_neg(tensor)
    return _kept(tensor, torch._neg_view(tensor.detach().neg().conj_physical().conj()))


def with_offset(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values that begin one element into their storage, so that they are not aligned."""
    base = tensor.detach()
    room = torch.zeros(base.numel() + 1, dtype=base.dtype, device=base.device)
    view = room[1:].view(base.shape)
    view.copy_(base)
    return _kept(tensor, view)


def with_stride(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values, every other element of a larger storage whose rest is filled with others."""
    base = tensor.detach()
    if base.dim() == 0:
        return with_offset(tensor)
    room = torch.ones((*base.shape, 2), dtype=base.dtype, device=base.device)
    view = room[..., 1]
    view.copy_(base)
    return _kept(tensor, view)


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Return equal values with the memory order of the last two dimensions exchanged."""
    base = tensor.detach()
    if base.dim() < 2:
        return with_stride(tensor)
    return _kept(tensor, base.transpose(-1, -2).contiguous().transpose(-1, -2))


def _kept(tensor: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    return view.requires_grad_(tensor.requires_grad)


def zero_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return zeros that have no memory, as automatic differentiation makes them."""
    return torch._efficientzerotensor(tensor.shape, dtype=tensor.dtype, device=tensor.device)


def as_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the values in another dtype."""
    return tensor.detach().to(dtype)
