"""Codec between arguments or results and JSON plus raw bytes.

`pack` encodes any tree of tensors and ATen scalars as a `Packed`: a JSON tree in which every tensor refers to a
*group*, and one byte span for each group. Tensors that share a storage share a group, so aliasing, strides, overlaps
and offsets survive a round trip. `unpack` rebuilds the tree in fresh memory with the same alignment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from traces.errors import TraceError
from traces.live import Extent, extent_of
from traces.live import span_elements as span_elements
from traces.live import unsupported_reason as unsupported_reason
from traces.span import Span

Json: TypeAlias = Any  # any value that `json.loads` returns
Bytes: TypeAlias = bytes | bytearray | memoryview

ALIGNMENT = 128  # bytes; Triton specialises on 16, and vector loads and tensor-core descriptors need up to 128
GUARD = 256  # poisoned bytes before and after every rebuilt group
POISON = 0xFF  # NaN in every float format, -1 in every signed integer format
MAX_TENSOR_BYTES = 1 << 36  # bytes of one tensor, whatever its strides
# Limit for uninitialised groups; they carry no bytes, so nothing else bounds the size that a trace can claim.
MAX_UNKNOWN_BYTES = 1 << 32

_ENUMS: dict[str, tuple[type, dict[str, Any]]] = {
    tag: (kind, {str(v).removeprefix("torch."): v for v in vars(torch).values() if isinstance(v, kind)})
    for tag, kind in {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}.items()
}
_DTYPES = _ENUMS["dtype"][1]
DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_DEVICE = re.compile(r"[a-z]\w*(:\d{1,4})?")  # an out-of-tree backend may have any name


@dataclass(frozen=True)
class StorageSpan:
    """One byte range in a storage that tensors of one call share.

    `nbytes` is its length and `align` is the address of its first byte modulo 128. `known` is False if the contents are
    not recorded, as for an uninitialised or write-only destination.
    """

    nbytes: int
    align: int
    device: str
    known: bool = True


@dataclass(frozen=True)
class TensorRef:
    """A strided view of a group; `offset` counts bytes from the group's first byte, shape and stride count elements."""

    group: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    requires_grad: bool = False
    conj: bool = False
    neg: bool = False


@dataclass
class Packed:
    """An encoded call: `tree`, `tensors`, `groups`, and in `data` the bytes for each group (None if unknown)."""

    tree: Json
    tensors: list[TensorRef] = field(default_factory=list)
    groups: list[StorageSpan] = field(default_factory=list)
    data: list[Bytes | None] = field(default_factory=list)

    def header(self) -> Json:
        """Return everything except the bytes, as JSON."""
        return {
            "tree": self.tree,
            "tensors": [_trim(vars(t), _TENSOR_DEFAULTS) for t in self.tensors],
            "groups": [_trim(vars(g), _GROUP_DEFAULTS) for g in self.groups],
        }

    @classmethod
    def from_header(cls, header: Json, data: list[Bytes | None], where: str) -> Packed:
        """Build a Packed from the JSON that `header()` wrote. Raise TraceError if it is malformed or does not fit."""
        try:
            tensors = [
                TensorRef(**{**t, "shape": tuple(t["shape"]), "stride": tuple(t["stride"])}) for t in header["tensors"]
            ]
            groups = [StorageSpan(**g) for g in header["groups"]]
            packed = cls(header["tree"], tensors, groups, data)
        except (KeyError, TypeError, AttributeError) as error:
            raise TraceError(f"{where}: not a packed call ({error!r})") from error
        packed.validate(where)
        return packed

    def validate(self, where: str) -> None:
        """Check every size and offset against the actual bytes before anything is allocated. Raise TraceError."""
        if not isinstance(self.tree, dict):
            raise TraceError(f"{where}: tree is {type(self.tree).__name__}, expected an object")
        if len(self.data) != len(self.groups):
            raise TraceError(f"{where}: {len(self.groups)} groups but {len(self.data)} byte spans")
        for i, (group, data) in enumerate(zip(self.groups, self.data, strict=True)):
            _check_group(group, data, f"{where}: groups[{i}]")
        unknown = sum(g.nbytes for g in self.groups if not g.known)
        if unknown > MAX_UNKNOWN_BYTES:
            raise TraceError(f"{where}: groups claim {unknown} unknown bytes, the limit is {MAX_UNKNOWN_BYTES}")
        for i, ref in enumerate(self.tensors):
            _check_ref(ref, self.groups, f"{where}: tensors[{i}]")


_TENSOR_DEFAULTS, _GROUP_DEFAULTS = {"requires_grad": False, "conj": False, "neg": False}, {"known": True}


def _trim(fields: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in fields.items() if k not in defaults or v != defaults[k]}


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _check_group(group: StorageSpan, data: Bytes | None, where: str) -> None:
    if not _is_size(group.nbytes) or not _is_size(group.align) or group.align >= ALIGNMENT:
        raise TraceError(f"{where}: nbytes {group.nbytes!r}, align {group.align!r} out of range")
    if group.known != (data is not None):
        raise TraceError(f"{where}: known is {group.known!r}, bytes present is {data is not None}")
    if data is not None and len(data) != group.nbytes:
        raise TraceError(f"{where}: nbytes says {group.nbytes}, the stored span has {len(data)}")


def _check_ref(ref: TensorRef, groups: list[StorageSpan], where: str) -> None:
    if not isinstance(ref.group, int) or not 0 <= ref.group < len(groups):
        raise TraceError(f"{where}: group {ref.group!r} does not exist")
    if not isinstance(ref.dtype, str) or ref.dtype not in _DTYPES:
        raise TraceError(f"{where}: unknown dtype {ref.dtype!r}")
    sizes = (*ref.shape, *ref.stride, ref.offset, math.prod(n if _is_size(n) else 0 for n in ref.shape))
    if len(ref.shape) != len(ref.stride) or not all(map(_is_size, sizes)):
        raise TraceError(f"{where}: shape {ref.shape}, stride {ref.stride}, offset {ref.offset!r} are not sizes")
    itemsize = _DTYPES[ref.dtype].itemsize
    if ref.offset % itemsize or groups[ref.group].align % itemsize:
        raise TraceError(f"{where}: offset {ref.offset} is not aligned to {ref.dtype}")
    end = ref.offset + span_elements(ref.shape, ref.stride) * itemsize
    if end > groups[ref.group].nbytes:
        raise TraceError(f"{where}: reaches byte {end} of a span of {groups[ref.group].nbytes}")
    if math.prod(ref.shape) * itemsize > MAX_TENSOR_BYTES:  # an operator may materialise a tensor that has strides of 0
        raise TraceError(f"{where}: shape {ref.shape} claims more than {MAX_TENSOR_BYTES} bytes")


def by_storage(tree: Mapping[str, Any]) -> bool:
    """Return True if a call takes a `storage_offset`, so that each span has to be a whole storage."""
    return "storage_offset" in tree


class _Packer:
    def __init__(self) -> None:
        self.live: list[Extent] = []
        self.known: set[int] = set()  # storages whose contents are to be recorded
        self.sparse: list[int] = []  # ids of the sparse tensors, which have no single storage that could be shared

    def encode(self, value: Any, contents: bool) -> Json:  # noqa: PLR0911 - one return per kind of value
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value, contents)
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, complex):
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, list):
            return [self.encode(v, contents) for v in value]
        if isinstance(value, tuple):
            return {"tuple": [self.encode(v, contents) for v in value]}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        tag = next((tag for tag, (kind, _) in _ENUMS.items() if isinstance(value, kind)), None)
        return {tag: str(value).removeprefix("torch.")} if tag else {"unsupported": type(value).__name__}

    def _tensor(self, t: torch.Tensor, contents: bool) -> Json:
        reason = unsupported_reason(t)
        if reason is not None:
            return {"unsupported": f"{reason} tensor"}
        if t.is_sparse:
            parts = {"indices": t._indices(), "values": t._values()}
            encoded = {k: self.encode(v, contents) for k, v in parts.items()}
            same = {"same": self.sparse.index(id(t))} if id(t) in self.sparse else {}
            self.sparse += [] if same else [id(t)]
            return {"sparse_coo": {**encoded, "size": list(t.shape), "coalesced": t.is_coalesced(), **same}}
        extent = extent_of(t)
        if contents:
            self.known.add(extent.cdata)
        self.live.append(extent)
        return {"tensor": len(self.live) - 1}

    def finish(self, tree: Json) -> tuple[Packed, list[Span | None]]:
        packed, to_read = Packed(tree), list[Span | None]()
        whole, first = by_storage(tree), dict[int, tuple[int, Extent]]()  # group number and first extent, by storage
        spans: list[list[int]] = []  # [lo, hi) in bytes of each storage
        for extent in self.live:
            lo, hi = extent.lo, extent.hi
            if whole:
                lo, hi = 0, extent.storage.nbytes() // extent.dtype.itemsize * extent.dtype.itemsize
            g, _ = first.setdefault(extent.cdata, (len(first), extent))
            if g == len(spans):
                spans.append([lo, hi])
            else:
                spans[g] = [min(spans[g][0], lo), max(spans[g][1], hi)]
        for (_, extent), (lo, hi) in zip(first.values(), spans, strict=True):
            storage, known = extent.storage, extent.cdata in self.known
            align = (storage.data_ptr() + lo) % ALIGNMENT if storage.nbytes() else 0
            packed.groups.append(StorageSpan(hi - lo, align, str(extent.tensor.device), known))
            to_read.append(Span(storage, lo, hi - lo, extent.tensor.device) if known else None)
        for extent in self.live:
            t, (g, _) = extent.tensor, first[extent.cdata]
            packed.tensors.append(
                TensorRef(
                    group=g,
                    offset=extent.lo - spans[g][0],
                    shape=extent.shape,
                    stride=extent.stride,
                    dtype=DTYPE_NAMES[extent.dtype],
                    requires_grad=t.requires_grad,
                    conj=t.is_conj(),
                    neg=t.is_neg(),
                )
            )
        return packed, to_read


def pack(arguments: dict[str, Any], write_only: frozenset[str] = frozenset()) -> Packed:
    """Encode a mapping from names to values.

    For CPU tensors the bytes in `.data` are views into live memory, so copy or hash them before the tensors change.
    Tensors under a name in `write_only` keep only metadata; their contents are not read, unless another argument shares
    their storage.
    """
    packed, spans = lay_out(arguments, write_only)
    packed.data = [None if span is None else span.host() for span in spans]
    return packed


def lay_out(arguments: dict[str, Any], write_only: frozenset[str] = frozenset()) -> tuple[Packed, list[Span | None]]:
    """Encode like `pack`, but return the spans to read (None if unknown) instead of filling `.data`."""
    packer = _Packer()
    return packer.finish({name: packer.encode(value, name not in write_only) for name, value in arguments.items()})


def encoded(value: Any, refer: Callable[[Any], int | None]) -> Json:
    """Encode one value as part of a tree; `refer` maps a value to its tensor number, or to None for any other value."""
    number = refer(value)
    if number is not None:
        return {"tensor": number}
    if isinstance(value, list | tuple):
        items = [encoded(v, refer) for v in value]
        return items if isinstance(value, list) else {"tuple": items}
    return _Packer().encode(value, contents=False)


def decoded(tree: Json, tensors: list[Any], where: str, device: str | None = None) -> dict[str, Any]:
    """Decode what `encoded` wrote, with every device replaced by `device` unless that is None. Raise TraceError."""
    decode = _decoder(tensors, where, device)
    return {name: decode(value) for name, value in tree.items()}


def unpack(
    packed: Packed, where: str = "call", memory: list[Rebuilt] | None = None, device: str | None = "cpu"
) -> dict[str, Any]:
    """Rebuild the arguments in fresh memory with the same aliasing, strides and alignment.

    Unknown contents are poisoned. The tensors never require grad. They are on `device`, which also replaces arguments
    that are devices, because the recorded one may not exist here; None keeps each as recorded. `memory` receives the
    memory of each group, for later checks of its guards; entries from an earlier call with the same groups are reused.
    Raise TraceError if the tree cannot be rebuilt.
    """
    packed.validate(where)
    earlier: list[Any] = memory or [None] * len(packed.groups)
    guard = 0 if by_storage(packed.tree) else GUARD
    spans = zip(packed.groups, packed.data, earlier, strict=True)
    groups = [_rebuild_group(*span, device or span[0].device, guard) for span in spans]
    tensors = [_rebuild_tensor(ref, groups[ref.group]) for ref in packed.tensors]
    if memory is not None:
        memory[:] = groups
    try:
        return decoded(packed.tree, tensors, where, device)
    except RecursionError as error:
        raise TraceError(f"{where}: tree is nested too deeply") from error


@dataclass(frozen=True)
class Rebuilt:
    """A group at `start` in a buffer, with poisoned guards around it unless it is a whole storage."""

    buffer: torch.Tensor
    start: int
    nbytes: int

    def guards_intact(self) -> bool:
        """Return False if something was written just before or after the group."""
        sides = self.buffer[: self.start], self.buffer[self.start + self.nbytes :]
        return all(bool((side == POISON).all()) for side in sides)


def _rebuild_group(group: StorageSpan, data: Bytes | None, last: Rebuilt | None, device: str, guard: int) -> Rebuilt:
    """Rebuild a group with at least `guard` poisoned bytes on either side; 0 means no guards and any alignment."""
    size = group.nbytes + (2 * guard + ALIGNMENT if guard else 0)
    buffer = last.buffer.fill_(POISON) if last else torch.full((size,), POISON, dtype=torch.uint8, device=device)
    start = guard + (group.align - buffer.data_ptr() - guard) % ALIGNMENT if guard else 0
    if data is not None and group.nbytes:
        buffer[start : start + group.nbytes].copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    return Rebuilt(buffer, start, group.nbytes)


def _rebuild_tensor(ref: TensorRef, group: Rebuilt) -> torch.Tensor:
    dtype = _DTYPES[ref.dtype]
    t = torch.empty(0, dtype=torch.uint8, device=group.buffer.device).view(dtype)  # an empty complex32 would warn
    t.set_(group.buffer.untyped_storage(), (group.start + ref.offset) // dtype.itemsize, ref.shape, ref.stride)
    t = torch.conj(t) if ref.conj else t
    return torch._neg_view(t) if ref.neg else t


def _decoder(tensors: list[torch.Tensor], where: str, device: str | None) -> Callable[[Json], Any]:
    def tensor(index: Json) -> torch.Tensor:
        if not isinstance(index, int) or not 0 <= index < len(tensors):
            raise TraceError(f"{where}: tensor {index!r} does not exist")
        return tensors[index]

    built_before: list[torch.Tensor] = []  # sparse tensors, in order

    def sparse(parts: Json) -> torch.Tensor:
        if "same" in parts:  # this argument is the same object as an earlier one
            again: torch.Tensor = built_before[parts["same"]]
            return again
        built = torch.sparse_coo_tensor(
            decode(parts["indices"]), decode(parts["values"]), parts["size"], check_invariants=True
        )
        built_before.append(built._coalesced_(bool(parts["coalesced"])))
        return built_before[-1]

    def moved_device(recorded: Json) -> torch.device:
        if not _DEVICE.fullmatch(recorded):
            raise ValueError("not the name of a device")
        return torch.device(device or recorded)

    def special(value: dict[str, Json]) -> Any:
        tag, content = next(iter(value.items()))
        if tag in _ENUMS:
            return _ENUMS[tag][1][content]
        kinds: dict[str, Callable[[Json], Any]] = {
            "tensor": tensor,
            "float": float.fromhex,
            "complex": lambda parts: complex(*map(float.fromhex, parts)),
            "tuple": lambda items: tuple(map(decode, items)),
            "device": moved_device,
            "sparse_coo": sparse,
        }
        if tag not in kinds:
            raise TraceError(f"{where}: cannot rebuild {tag} value {str(content)[:80]!r}")
        return kinds[tag](content)

    def decode(value: Json) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, list):
            return [decode(v) for v in value]
        if not isinstance(value, dict) or len(value) != 1:
            raise TraceError(f"{where}: not an encoded value: {str(value)[:80]!r}")
        try:
            return special(value)
        except RecursionError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, IndexError) as error:
            raise TraceError(f"{where}: bad value {str(value)[:80]!r} ({error})") from error

    return decode


def numel(ref: TensorRef) -> int:
    """Return the number of elements in the tensor that `ref` describes."""
    return math.prod(ref.shape)


def on_host(packed: Packed) -> Packed:
    """Replace every device argument in the tree with the CPU, in place, and return the packed call."""

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(v) for v in value]
        if isinstance(value, dict):
            return {k: "cpu" if k == "device" else moved(v) for k, v in value.items()}
        return value

    packed.tree = {name: moved(value) for name, value in packed.tree.items()}
    return packed
