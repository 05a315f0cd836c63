"""In which precision a GPU multiplies float32: in full, as the CPU does, or in TF32, of 11 significant bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload

from traces.facts import tagged
from traces.overloads import base_name

IEEE, TF32 = "ieee", "tf32"
_PRODUCTS = tagged("matmul_precision")


def settings() -> dict[str, str]:
    """PyTorch's settings in force by kind of operator; convolutions may use TF32 by default."""
    return {name: place.fp32_precision for name, place in _places().items()}


@contextmanager
def in_full() -> Iterator[None]:
    """Multiply float32 in full inside the block, whatever the settings were."""
    before = settings()
    try:
        _set(dict.fromkeys(before, IEEE))
        yield
    finally:
        _set(before)


def computed_in(op: OpOverload, tensors: Iterable[torch.Tensor]) -> frozenset[str]:
    """The floating dtypes of a call's tensors on a GPU; `tf32` in place of float32 where it is multiplied so."""
    found = {str(t.dtype).removeprefix("torch.") for t in tensors if t.is_floating_point() or t.is_complex()}
    kind = _kind(op)
    if kind is not None and "float32" in found and settings()[kind] == TF32:
        found = found - {"float32"} | {TF32}
    return frozenset(found)


def _kind(op: OpOverload) -> str | None:
    name = base_name(op)
    if "convolution" in name:
        return "conv"
    if "_rnn" in name:
        return "rnn"
    return "matmul" if name in _PRODUCTS else None


def _places() -> dict[str, Any]:
    cudnn = torch.backends.cudnn
    return {"conv": cudnn.conv, "rnn": cudnn.rnn, "matmul": torch.backends.cuda.matmul}  # type: ignore[attr-defined]


def _set(values: dict[str, str]) -> None:
    """By PyTorch's older names, since reading those raises where only the newer ones were set.

    Below `torch.backends.cudnn`, whose properties torch.testing, once imported, lets nobody set.
    """
    torch._C._set_cudnn_allow_tf32(values["conv"] == TF32)
    torch.set_float32_matmul_precision("high" if values["matmul"] == TF32 else "highest")
    if values["rnn"] != values["conv"]:
        torch.backends.cudnn.rnn.fp32_precision = values["rnn"]  # type: ignore[attr-defined]
