"""Inspect a packed call: the names and the contents of its tensors, and the values that need special treatment."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import torch
from blake3 import blake3

from traces.materialise import STORAGE_ALIGNMENT
from traces.values import Packed, numel


def holds_special(packed: Packed) -> bool:
    """Return True if an argument contains NaN or an infinity."""
    tensors = [contents(packed, i) for i, ref in enumerate(packed.tensors) if packed.data[ref.group] is not None]
    return not all(bool((t.float() if t.dtype.itemsize == 1 else t).isfinite().all()) for t in tensors)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return True if two tensors with one dtype have equal bits; strides may differ."""
    flat = [t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1) for t in (a, b)]
    return a.shape == b.shape and torch.equal(*(t.view(torch.uint8) for t in flat))


def unsupported(tree: Any) -> str:
    """Return a description of the first value that the recorder could not store, or an empty string."""
    if isinstance(tree, dict):
        if "unsupported" in tree:
            return str(tree["unsupported"])[:80]
        tree = list(tree.values())
    return next(filter(None, map(unsupported, tree)), "") if isinstance(tree, list) else ""


def holds_sparse(tree: Any) -> bool:
    """Return True if a packed tree contains a sparse tensor."""
    if isinstance(tree, dict):
        return "sparse_coo" in tree or any(map(holds_sparse, tree.values()))
    return isinstance(tree, list) and any(map(holds_sparse, tree))


def tensor_names(tree: dict[str, Any]) -> list[str]:
    """Return a readable name for each tensor in a packed tree, in order: `self`, `tensors[2]`, `return[0]`."""
    names: list[str] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, list):
            for i, item in enumerate(value):
                walk(item, f"{path}[{i}]")
        elif isinstance(value, dict):
            for key, item in value.items():
                if key == "tensor":
                    names.append(path)
                else:
                    walk(item, path if key in ("tuple", "sparse_coo") else f"{path}.{key}")

    for name, value in tree.items():
        walk(value, name)
    return names


def contents(packed: Packed, index: int) -> torch.Tensor:
    """Return tensor `index` of a packed call as a new contiguous tensor in its own dtype."""
    ref = packed.tensors[index]
    data = packed.data[ref.group]
    dtype = getattr(torch, ref.dtype)
    if data is None or not numel(ref):
        return torch.empty(ref.shape, dtype=dtype)
    flat = torch.frombuffer(bytearray(data)[ref.offset :], dtype=torch.uint8)
    flat = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    dense = flat.as_strided(ref.shape, ref.stride).clone(memory_format=torch.contiguous_format)
    dense = dense.conj().resolve_conj() if ref.conj else dense
    return -dense if ref.neg else dense


def digest_of(overload: str, packed: Packed) -> str:
    """Return the BLAKE3 digest of a call with the addresses of a case; equal calls have the same digest."""
    digest = blake3(json.dumps([overload, packed.header()]).encode())
    for span in packed.data:
        digest.update(span or b"")
    return digest.hexdigest()


def placed(packed: Packed) -> Packed:
    """Return the call with the addresses of a case: storages begin at multiples of 64 bytes, at no particular one."""
    return replace(packed, groups=[replace(group, align=group.align % STORAGE_ALIGNMENT) for group in packed.groups])
