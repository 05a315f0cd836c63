"""Format a recorded call's arguments as one line of text, for prompts and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traces.values import Packed, TensorRef


def describe(packed: Packed) -> str:
    """Return shapes, strides, dtypes and scalars as text, without tensor contents.

    Example: `self: float32 [12, 64] stride [64, 1], approximate: 'none'`.
    """
    return ", ".join(f"{name}: {_value(value, packed.tensors)}" for name, value in packed.tree.items())


def _value(value: Any, tensors: list[TensorRef]) -> str:
    """Return one argument as text."""
    if isinstance(value, list):
        return f"[{', '.join(_value(v, tensors) for v in value)}]"
    if not isinstance(value, dict):
        return repr(value)
    tag, content = next(iter(value.items()))
    if tag == "tensor":
        return _tensor(tensors[content])
    if tag == "float":
        return repr(float.fromhex(content))
    if tag == "complex":
        return repr(complex(*map(float.fromhex, content)))
    if tag == "tuple":
        return f"({', '.join(_value(v, tensors) for v in content)})"
    return f"{tag} {content}" if isinstance(content, str) else tag


def _tensor(ref: TensorRef) -> str:
    return f"{ref.dtype} {list(ref.shape)} stride {list(ref.stride)}"
