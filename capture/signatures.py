"""Argument text for a live call, equal to the text that `traces.text.describe` builds for a stored one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from traces.lazy_bits import lazy_bits
from traces.text import bucket, call_text, tensor_text

_EXACT = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def describe(arguments: Mapping[str, Any]) -> str:
    """Return argument text such as `(self=float32[768, 128], mat2=float32[128, 384]:(1, 128))`."""
    first = next(iter(arguments.values()), None)
    same = [name for name, value in arguments.items() if value is first and isinstance(value, torch.Tensor)][1:]
    return call_text({name: _text(value) for name, value in arguments.items()}, same)


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, float):
        return f"<{bucket(value)}>"
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    return str(value) if isinstance(value, _EXACT) else f"<{type(value).__name__}>"


def _tensor(t: torch.Tensor) -> str:
    dtype, device = str(t.dtype).removeprefix("torch."), str(t.device)
    if t.is_nested:
        return tensor_text(dtype, (), None, ["nested"], device)
    if t.layout is not torch.strided or t.is_mkldnn:
        coalesced = ", coalesced" if t.is_sparse and t.is_coalesced() else ""
        layout = str(t.layout).removeprefix("torch.") + coalesced
        return tensor_text(dtype, t.shape, None, [layout], device)
    return tensor_text(dtype, t.shape, t.stride(), sorted(lazy_bits(t)), device)
