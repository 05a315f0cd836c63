"""Format reports for prompts: a case's arguments."""

from __future__ import annotations

from typing import Any

from traces.values import Packed, TensorRef, span_elements
from verify.cases.packed import contents, tensor_names
from verify.comparison.accuracy import summary, values


def inputs_report(packed: Packed, changed: bool = False) -> str:
    """Describe a case's arguments: scalars by their values, tensors by a summary.

    Args:
        packed: Packed arguments.
        changed: True if the contents differ from those of the case.
    """
    lines = [
        "arguments of this case, with the new contents with which it fails:" if changed else "arguments of this case:"
    ]
    for name, value in packed.tree.items():
        if not _holds_tensor(value):
            lines.append(f"  {name} = {_scalar(value)}")
    for i, name in enumerate(tensor_names(packed.tree)):
        ref, tensor = packed.tensors[i], contents(packed, i)
        known = packed.data[ref.group] is not None
        shown = values(tensor) if known else ""
        text = summary(tensor) if known else f"shape {list(ref.shape)} {ref.dtype}, contents unknown"
        layout = f"stride {list(ref.stride)}{_layout(ref)}"
        lines.append(f"  {name}: {text}, {layout}{f', values {shown}' if shown else ''}")
    return "\n".join(lines)


def _layout(ref: TensorRef) -> str:
    """Describe an unusual memory layout, such as ' (expanded: elements share memory)'; '' for a contiguous tensor."""
    sizes = [(n, s) for n, s in zip(ref.shape, ref.stride, strict=True) if n > 1]
    if 0 in ref.shape:
        return ""
    if any(s == 0 for _, s in sizes):
        return " (expanded: elements share memory)"
    elements, dense = 1, 1
    for n, _ in sizes:
        elements *= n
    for n, s in reversed(sizes):
        if s != dense:
            break
        dense *= n
    if dense == elements:
        return ""
    return " (dense, dimensions permuted)" if span_elements(ref.shape, ref.stride) == elements else " (with gaps)"


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        return any(k in ("tensor", "sparse_coo") or _holds_tensor(v) for k, v in value.items())
    return isinstance(value, list) and any(map(_holds_tensor, value))


def _scalar(value: Any) -> str:
    """Format a JSON-encoded scalar as Python source."""
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, dict):
        tag, content = next(iter(value.items()))
        if tag == "float":
            return repr(float.fromhex(content))
        return f"torch.{content}" if tag in ("dtype", "layout", "memory_format") else str(content)
    return repr(value)
