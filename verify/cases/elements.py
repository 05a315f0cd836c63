"""Transform the elements of a packed call: map each by a function, or widen all to float64."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import torch

from traces.values import Bytes, Packed, StorageSpan, TensorRef, pack, unpack

SMALLEST_NORMAL = torch.finfo(torch.float32).smallest_normal  # that of bfloat16, too
_PARTS = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def mapped(
    packed: Packed, change: Callable[[torch.Tensor], torch.Tensor], groups: Collection[int] | None = None
) -> Packed:
    """Return the call with the floating elements mapped by `change`, storage group by storage group.

    The real and imaginary parts of complex elements are mapped separately. If `groups` is given, only these
    storage groups change.
    """
    dtypes = _dtypes_by_group(packed)
    data = [
        _mapped_span(d, *kinds, change=change) if groups is None or i in groups else d
        for i, (d, kinds) in enumerate(zip(packed.data, dtypes, strict=True))
    ]
    return replace(packed, data=data)


def without_denormals(values: torch.Tensor) -> torch.Tensor:
    """Return float32 or bfloat16 values with zeros of the same sign for denormal ones; return others unchanged."""
    if values.dtype not in (torch.float32, torch.bfloat16):
        return values
    return torch.where(values.abs() < SMALLEST_NORMAL, values * 0, values)


def positive(packed: Packed) -> Packed:
    """Return the call with `alpha` and `beta` replaced by their absolute values."""
    tree = dict(packed.tree)
    for name in {"alpha", "beta"} & tree.keys():
        value = tree[name]
        if isinstance(value, dict) and "float" in value:
            tree[name] = {"float": abs(float.fromhex(value["float"])).hex()}
        elif type(value) is int:
            tree[name] = abs(value)
    return replace(packed, tree=tree)


def as_number(packed: Packed, name: str, factor: float) -> Packed | None:
    """Return the call with one integer tensor converted to float64 and multiplied by a factor.

    Return None if the named argument is not such a tensor.
    """
    arguments = unpack(packed)
    tensor = arguments.get(name)  # None if the name is part of an argument, such as a sparse tensor's indices
    if not isinstance(tensor, torch.Tensor) or tensor.is_floating_point() or tensor.is_complex():
        return None
    changed = pack({**arguments, name: tensor.double() * factor})
    return replace(changed, data=[None if d is None else bytes(d) for d in changed.data])


def promoted(packed: Packed, dtype: torch.dtype) -> Packed | None:
    """Return the call with integers and bools promoted to a floating dtype, then widened to float64.

    Return None if there are no such tensors.
    """
    arguments = unpack(packed)
    tensors = [t for v in arguments.values() for t in (v if isinstance(v, list | tuple) else [v])]
    if not any(map(_is_of_integers, tensors)):
        return None

    def changed(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(changed, value))
        return value.to(dtype).double() if _is_of_integers(value) else value

    return frozen(pack({name: changed(value) for name, value in arguments.items()}))


def _is_of_integers(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_floating_point() and not value.is_complex()


def _mapped_span(data: Bytes | None, *dtypes: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Bytes | None:
    dtype = real_dtype(dtypes[0]) if len(dtypes) == 1 else torch.bool
    if not data or not dtype.is_floating_point:
        return data
    values = torch.frombuffer(bytearray(data), dtype=dtype)
    return change(values).view(torch.uint8).numpy().tobytes()


def frozen(packed: Packed) -> Packed:
    """Return a snapshot of the call that later writes to its tensors do not change."""
    return replace(packed, data=[None if d is None else bytes(d) for d in packed.data])


def widen(packed: Packed) -> Packed | None:
    """Return the call in float64 or complex128, or None if that is impossible or changes nothing.

    Every storage group with one floating dtype is converted as a whole, so aliasing is preserved. A floating
    dtype that the call names as an argument is widened too. Conversion is impossible if tensors with different
    dtypes share a group.
    """
    dtypes = _dtypes_by_group(packed)
    if any(len(d) > 1 for d in dtypes):
        return None
    factors = [_factor(next(iter(d), "bool")) for d in dtypes]
    tree = _widen_tree(packed.tree)
    if all(f == 1 for f in factors) and tree == packed.tree:
        return None
    data = [_widen_span(d, next(iter(kinds), ""), f) for d, kinds, f in zip(packed.data, dtypes, factors, strict=True)]
    groups = [
        g if f == 1 else StorageSpan(g.nbytes * f, 0, g.device, g.known)
        for g, f in zip(packed.groups, factors, strict=True)
    ]
    tensors = [r if factors[r.group] == 1 else _widen_ref(r, factors[r.group]) for r in packed.tensors]
    return Packed(tree, tensors, groups, data)


def _dtypes_by_group(packed: Packed) -> list[set[str]]:
    dtypes: list[set[str]] = [set() for _ in packed.groups]
    for ref in packed.tensors:
        dtypes[ref.group].add(ref.dtype)
    return dtypes


def real_dtype(dtype: str) -> torch.dtype:
    """Return the dtype of a complex dtype's parts; return any other dtype unchanged."""
    parsed: torch.dtype = getattr(torch, dtype)
    return _PARTS.get(parsed, parsed)


def _wide(dtype: str) -> torch.dtype:
    return torch.complex128 if getattr(torch, dtype).is_complex else torch.float64


def _factor(dtype: str) -> int:
    """Return the ratio of the float64 element size to this dtype's; 1 for integers and bools."""
    real = real_dtype(dtype)
    return 8 // real.itemsize if real.is_floating_point else 1


def _widen_span(data: Bytes | None, dtype: str, factor: int) -> Bytes | None:
    if data is None or factor == 1 or not len(data):
        return data
    narrow = torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype))
    return narrow.to(_wide(dtype)).numpy().tobytes()


def _widen_ref(ref: TensorRef, factor: int) -> TensorRef:
    return replace(ref, offset=ref.offset * factor, dtype=str(_wide(ref.dtype)).removeprefix("torch."))


def _widen_tree(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_widen_tree(v) for v in tree]
    if isinstance(tree, dict):
        if tree.keys() == {"dtype"} and _factor(tree["dtype"]) > 1:
            return {"dtype": str(_wide(tree["dtype"])).removeprefix("torch.")}
        return {k: _widen_tree(v) for k, v in tree.items()}
    return tree
