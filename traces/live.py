"""Checks on live tensors before their bytes are recorded: does the tensor have bytes, and which ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch


class Extent(NamedTuple):
    """Location of a strided tensor: bytes [lo, hi) in a storage, which `cdata` identifies."""

    tensor: torch.Tensor
    storage: torch.UntypedStorage
    cdata: int
    lo: int
    hi: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


def extent_of(t: torch.Tensor) -> Extent:
    """Locate a strided tensor in its storage.

    The offset of an empty tensor may lie past the end of its storage; `lo` is then clamped to the end.
    """
    storage, size = t.untyped_storage(), t.element_size()
    shape, stride = tuple(t.shape), t.stride()
    lo, elements = int(t.storage_offset()) * size, span_elements(shape, stride)
    if not elements:
        lo = min(lo, storage.nbytes())
    return Extent(t, storage, storage._cdata, lo, lo + elements * size, shape, stride, t.dtype)


def span_elements(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Count the elements from the first to the last that a strided tensor touches; 0 if it is empty."""
    end = 1
    for n, s in zip(shape, stride, strict=True):
        if not n:
            return 0
        end += (n - 1) * s
    return end


def unsupported_reason(t: torch.Tensor) -> str | None:
    """Return the reason why the bytes of `t` cannot be recorded, or None.

    Call this before any access to the data.
    """
    if t.is_sparse:
        return None
    reason = unsupported_kind(t)
    if reason is not None or not t.numel():  # an empty tensor has nothing to read, whatever its data pointer
        return reason
    if t.data_ptr() == 0:
        return "no memory behind it"
    end = (t.storage_offset() + span_elements(tuple(t.shape), t.stride())) * t.element_size()
    return "storage was resized away" if end > t.untyped_storage().nbytes() else None


def unsupported_kind(t: torch.Tensor) -> str | None:  # noqa: PLR0911 - one return per kind of tensor
    """Return the reason why storage, shape and strides do not locate the elements of `t`, or None if they do."""
    if t.is_quantized:
        return "quantised"
    if t.is_nested:
        return "nested"
    if t.is_mkldnn:
        return "mkldnn"
    if t.is_meta:
        return "meta"
    if t.layout is not torch.strided:
        return str(t.layout).removeprefix("torch.")
    if t._is_zerotensor():
        return "zero tensor"
    return "functorch" if torch._C._functorch.is_functorch_wrapped_tensor(t) else None


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield every tensor in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(tuple(value.values()))
