"""Stored-call headers for calls with known shapes but without tensors in memory."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload

from traces.overloads import unread
from traces.values import Json, Packed, StorageSpan, TensorRef, pack, span_elements

ALIGNMENT = 128  # bytes; alignment of a storage's first byte, whose address the other tools do not keep


class Unreadable(Exception):
    """Raised if one call cannot be imported; the message is the reason, under which such calls are counted."""


def to_device(text: str) -> torch.device:
    """Return the device with this name. Raise Unreadable if there is no such device."""
    try:
        return torch.device(text)
    except RuntimeError as error:
        raise Unreadable("a device that is not one") from error


@dataclass(frozen=True)
class TensorSpec:
    """A tensor without contents.

    Attributes:
        shape: Sizes in elements.
        stride: Strides in elements.
        dtype: Element type.
        offset: Elements from the start of its storage.
        storage: Identity of the storage, equal for tensors that share one; None for a storage of its own.
        device: Device name.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    offset: int = 0
    storage: Hashable = None
    device: str = "cpu"

    @classmethod
    def checked(cls, shape: Any, stride: Any, dtype: torch.dtype, **more: Any) -> TensorSpec:
        """Return a TensorSpec with checked sizes.

        Raise Unreadable if a size is not an integer, is negative, or exceeds any memory.
        """
        sizes = [*shape, *stride, more.get("offset", 0)]
        whole = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 48 for n in sizes)
        if not whole or len(shape) != len(stride):
            raise Unreadable("a size or stride out of range")
        spec = cls(tuple(shape), tuple(stride), dtype, **more)
        if max(spec.last, math.prod(spec.shape)) >= 1 << 48:
            raise Unreadable("a size or stride out of range")
        return spec

    @property
    def last(self) -> int:
        """Return the number of elements from the start of the storage to the end of the tensor."""
        return self.offset + span_elements(self.shape, self.stride)


class TensorPlace(NamedTuple):
    """A tensor and its place in a call: the argument and, inside a list, the position."""

    argument: str
    position: int
    tensor: TensorSpec


def tensors_of(arguments: dict[str, Any]) -> Iterator[TensorPlace]:
    """Yield all tensors in the order in which the codec numbers them."""
    for name, value in arguments.items():
        for position, item in enumerate(value if isinstance(value, list | tuple) else (value,)):
            if isinstance(item, TensorSpec):
                yield TensorPlace(name, position, item)


def lay_out(op: OpOverload, arguments: dict[str, Any]) -> tuple[Packed, list[list[TensorPlace]]]:
    """Return the call without bytes, and the uses of each group.

    Tensors share a group if they share storage, dtype and device. As in a recording, a group is unknown if the overload
    does not read its contents.
    """
    uses = list(tensors_of(arguments))
    keys = [(u.tensor.storage, u.tensor.dtype, u.tensor.device) if u.tensor.storage else i for i, u in enumerate(uses)]
    index = {key: g for g, key in enumerate(dict.fromkeys(keys))}
    members = [[u for u, k in zip(uses, keys, strict=True) if k == key] for key in index]
    packed = Packed(_tree(arguments), groups=[_group(op, m) for m in members])
    first = [min(u.tensor.offset for u in m) for m in members]
    for use, key in zip(uses, keys, strict=True):
        t, g = use.tensor, index[key]
        offset = (t.offset - first[g]) * t.dtype.itemsize
        packed.tensors.append(TensorRef(g, offset, t.shape, t.stride, str(t.dtype).removeprefix("torch.")))
    return packed, members


def _group(op: OpOverload, members: list[TensorPlace]) -> StorageSpan:
    item = members[0].tensor.dtype.itemsize
    lo = min(u.tensor.offset for u in members)
    hi = max(u.tensor.last for u in members)
    known = any(u.argument not in unread(op) for u in members)
    return StorageSpan((hi - lo) * item, lo * item % ALIGNMENT, members[0].tensor.device, known)


def _tree(arguments: dict[str, Any]) -> dict[str, Json]:
    count = iter(range(1 << 30))

    def encode(value: Any) -> Json:
        if isinstance(value, TensorSpec):
            return {"tensor": next(count)}
        if isinstance(value, list):
            return [encode(v) for v in value]
        if isinstance(value, tuple):
            return {"tuple": [encode(v) for v in value]}
        return pack({"value": value}).tree["value"]

    return {name: encode(value) for name, value in arguments.items()}
