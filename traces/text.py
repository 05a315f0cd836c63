"""The arguments of a stored call as text, in the form of signatures.json, made from the call's header alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # exported packages have this file without that one
    from traces.values import Json


def describe(header: dict[str, Json]) -> str:
    """`(self=float32[768, 128], mat2=float32[128, 384]:(1, 128), beta=1)`; floats become buckets, see `bucket`."""
    tensors, groups = header["tensors"], header["groups"]

    def text(value: Json) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(text, value))}]"
        if not isinstance(value, dict):
            return repr(value)
        tag, content = next(iter(value.items()))
        if tag == "tensor":
            return _tensor(tensors[content], groups)
        if tag == "tuple":
            return text(content)
        if tag == "float":
            return f"<{bucket(float.fromhex(content))}>"
        if tag == "sparse_coo":
            return _sparse(content, tensors, groups)
        if tag in ("dtype", "layout", "memory_format"):
            return f"torch.{content}"
        return str(content) if tag == "device" else f"<{tag}>"

    names = list(header["tree"])
    first = _reference(header["tree"][names[0]], tensors) if names else None
    parts = []
    for i, name in enumerate(names):
        value = header["tree"][name]
        same = i > 0 and first is not None and _reference(value, tensors) == first
        parts.append(f"{name}={text(value)}{' is ' + names[0] if same else ''}")
    return f"({', '.join(parts)})"


def bucket(value: float) -> str:
    """0, 1, negative, positive, or not finite."""
    if value == 0.0:
        return "0"
    if value == 1.0:
        return "1"
    if 0.0 < value < math.inf:
        return "positive"
    if -math.inf < value < 0.0:
        return "negative"
    return "nan" if math.isnan(value) else "inf"


def row_major(shape: list[int] | tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous tensor of this shape."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _reference(value: Json, tensors: list[Json]) -> Any:
    return tensors[value["tensor"]] if isinstance(value, dict) and "tensor" in value else None


def _device(group: Json) -> str:
    return "" if group["device"] == "cpu" else f"@{group['device']}"


def _tensor(ref: Json, groups: list[Json]) -> str:
    strides = "" if tuple(ref["stride"]) == row_major(ref["shape"]) else f":{tuple(ref['stride'])}"
    bits = "".join(f"<{bit}>" for bit in ("conj", "neg") if ref.get(bit))
    return f"{ref['dtype']}{list(ref['shape'])}{strides}{bits}{_device(groups[ref['group']])}"


def _sparse(parts: Json, tensors: list[Json], groups: list[Json]) -> str:
    values = tensors[parts["values"]["tensor"]]
    coalesced = ", coalesced" if parts["coalesced"] else ""
    return f"{values['dtype']}{parts['size']}<sparse_coo{coalesced}>{_device(groups[values['group']])}"
