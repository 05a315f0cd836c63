"""Get and set the float32 matmul precision on a GPU: full, as on the CPU, or TF32 with 11 significant bits."""

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
    """Return PyTorch's current precision by operator kind; convolutions may use TF32 by default."""
    return {name: setting.fp32_precision for name, setting in _places().items()}


@contextmanager
def in_full() -> Iterator[None]:
    """Compute float32 products in full precision inside the block, whatever the settings were."""
    before = settings()
    try:
        _set(dict.fromkeys(before, IEEE))
        yield
    finally:
        _set(before)


def computed_in(op: OpOverload, tensors: Iterable[torch.Tensor]) -> frozenset[str]:
    """Return the floating dtypes of a call's tensors on a GPU, with `tf32` in place of float32 if TF32 is used."""
    dtypes = {str(t.dtype).removeprefix("torch.") for t in tensors if t.is_floating_point() or t.is_complex()}
    kind = _kind(op)
    if kind is not None and "float32" in dtypes and settings()[kind] == TF32:
        dtypes = dtypes - {"float32"} | {TF32}
    return frozenset(dtypes)


def _kind(op: OpOverload) -> str | None:
    """Return the operator kind that PyTorch's precision settings distinguish, or None."""
    name = base_name(op)
    if "convolution" in name:
        return "conv"
    if "_rnn" in name:
        return "rnn"
    return "matmul" if name in _PRODUCTS else None


def _places() -> dict[str, Any]:
    """Return the objects that hold PyTorch's settings, by operator kind."""
    cudnn = torch.backends.cudnn
    return {"conv": cudnn.conv, "rnn": cudnn.rnn, "matmul": torch.backends.cuda.matmul}  # type: ignore[attr-defined]


def _set(values: dict[str, str]) -> None:
    """Set the precision by PyTorch's older names, because reading those raises if only the newer ones were set.

    The cuDNN flag is set below `torch.backends.cudnn`. Once torch.testing is imported, it makes that module's
    properties read-only.
    """
    torch._C._set_cudnn_allow_tf32(values["conv"] == TF32)
    torch.set_float32_matmul_precision("high" if values["matmul"] == TF32 else "highest")
    if values["rnn"] != values["conv"]:
        torch.backends.cudnn.rnn.fp32_precision = values["rnn"]  # type: ignore[attr-defined]
