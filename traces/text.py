"""Argument text for a stored call, in the format that signatures.json uses, built from the call's header alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # exported packages contain this file without traces.values
    from traces.values import Json


def describe(header: dict[str, Json]) -> str:
    """Return argument text such as `(self=float32[768, 128], mat2=float32[128, 384]:(1, 128), beta=1)`.

    A stride tuple follows only if the tensor is not contiguous. Floats become buckets; see `bucket`.
    """
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
    same = {name for name in names[1:] if first is not None and _reference(header["tree"][name], tensors) == first}
    return call_text({name: text(header["tree"][name]) for name in names}, same)


def call_text(arguments: Mapping[str, str], same: Collection[str]) -> str:
    """Format a call as text.

    Args:
        arguments: Text by argument name.
        same: Names of arguments that are the same object as the first one.
    """
    first = next(iter(arguments), "")
    return f"({', '.join(f'{name}={text}' + f' is {first}' * (name in same) for name, text in arguments.items())})"


def tensor_text(  # noqa: PLR0913 - a tensor's properties
    dtype: str,
    shape: Sequence[int],
    stride: Sequence[int] | None,
    marks: Iterable[str],
    device: str,
) -> str:
    """Format a tensor as text.

    Args:
        dtype: Name without `torch.`.
        shape: Sizes in elements.
        stride: Strides in elements; None if the tensor has no strides.
        marks: Its layout and its lazy bits.
        device: Device name; the CPU is omitted from the text.
    """
    strides = "" if stride is None or tuple(stride) == row_major(shape) else f":{tuple(stride)}"
    where = "" if device == "cpu" else f"@{device}"
    return f"{dtype}{list(shape)}{strides}{''.join(f'<{mark}>' for mark in marks)}{where}"


def bucket(value: float) -> str:
    """Return the bucket for a float: 0, 1, positive, negative, nan, or inf for either infinity."""
    if value == 0.0:
        return "0"
    if value == 1.0:
        return "1"
    if 0.0 < value < math.inf:
        return "positive"
    if -math.inf < value < 0.0:
        return "negative"
    return "nan" if math.isnan(value) else "inf"


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, for a contiguous tensor with this shape."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _reference(value: Json, tensors: list[Json]) -> Any:
    return tensors[value["tensor"]] if isinstance(value, dict) and "tensor" in value else None


def _tensor(ref: Json, groups: list[Json]) -> str:
    marks = [bit for bit in ("conj", "neg") if ref.get(bit)]
    return tensor_text(ref["dtype"], ref["shape"], ref["stride"], marks, groups[ref["group"]]["device"])


def _sparse(parts: Json, tensors: list[Json], groups: list[Json]) -> str:
    values = tensors[parts["values"]["tensor"]]
    layout = "sparse_coo, coalesced" if parts["coalesced"] else "sparse_coo"
    return tensor_text(values["dtype"], parts["size"], None, [layout], groups[values["group"]]["device"])
