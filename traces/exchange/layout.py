"""Calls of which only shapes are known, as stored calls: headers are built without any tensor in memory."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload

from traces.overloads import unread
from traces.values import Json, Packed, StorageSpan, TensorRef, pack, span_elements

ALIGNMENT = 128  # bytes; of a storage's first byte, whose address the other tools do not keep


class Unreadable(Exception):
    """One call cannot be taken over; the message is the reason, under which such calls are counted."""


def to_device(text: str) -> torch.device:
    """Raises Unreadable if there is no such device."""
    try:
        return torch.device(text)
    except RuntimeError as error:
        raise Unreadable("a device that is not one") from error


@dataclass(frozen=True)
class TensorSpec:
    """A tensor without contents. offset: in elements from the start of its storage; storage: equal where shared."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    offset: int = 0
    storage: Hashable = None
    device: str = "cpu"

    @classmethod
    def checked(cls, shape: Any, stride: Any, dtype: torch.dtype, **more: Any) -> TensorSpec:
        """Raises Unreadable where sizes are not integers, negative, or beyond any memory."""
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
        """Elements from the start of the storage to the end of the tensor."""
        return self.offset + span_elements(self.shape, self.stride)


class TensorPlace(NamedTuple):
    """Where in a call a tensor stands: argument and, inside a list, position."""

    argument: str
    position: int
    tensor: TensorSpec


def tensors_of(arguments: dict[str, Any]) -> Iterator[TensorPlace]:
    """All tensors in the order in which the codec numbers them."""
    for name, value in arguments.items():
        for position, item in enumerate(value if isinstance(value, list | tuple) else (value,)):
            if isinstance(item, TensorSpec):
                yield TensorPlace(name, position, item)


def lay_out(op: OpOverload, arguments: dict[str, Any]) -> tuple[Packed, list[list[TensorPlace]]]:
    """The call without bytes, and the uses of each of its groups.

    Tensors share a group where they share storage, dtype and device. A group whose contents the overload does not read
    is unknown, as in a recording.
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
