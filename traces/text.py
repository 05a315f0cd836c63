"""The arguments of a stored call as text, in the form of signatures.json, made from the call's header alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    same = {name for name in names[1:] if first is not None and _reference(header["tree"][name], tensors) == first}
    return call_text({name: text(header["tree"][name]) for name in names}, same)


def call_text(arguments: Mapping[str, str], same: Collection[str]) -> str:
    """Return the text of a call. same: The names of arguments that are the same object as the first one."""
    first = next(iter(arguments), "")
    return f"({', '.join(f'{name}={text}' + f' is {first}' * (name in same) for name, text in arguments.items())})"


def tensor_text(  # noqa: PLR0913 - a tensor's properties
    dtype: str,
    shape: Sequence[int],
    stride: Sequence[int] | None,
    marks: Iterable[str],
    device: str,
) -> str:
    """Return the text of a tensor. stride: None if it has none. marks: Its layout and its lazy bits."""
    strides = "" if stride is None or tuple(stride) == row_major(shape) else f":{tuple(stride)}"
    where = "" if device == "cpu" else f"@{device}"
    return f"{dtype}{list(shape)}{strides}{''.join(f'<{mark}>' for mark in marks)}{where}"


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


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous tensor of this shape."""
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
