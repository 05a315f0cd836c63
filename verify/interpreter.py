"""Triton's interpreter made to compute as compiled kernels do, where it does not."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def mend() -> None:
    """Of Triton 3.6 to 3.9, in this process: conversions to and from bfloat16, and bounds of loops."""
    import triton.language as tl
    from triton.runtime import interpreter

    cast, patch = interpreter.InterpreterBuilder.cast_impl, interpreter._patch_lang_tensor

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        """It cuts float32 to bfloat16 where hardware rounds to nearest even, and takes others' numbers for bits."""
        source, target = src.dtype.scalar, dst_type.scalar
        if source == target or tl.bfloat16 not in (source, target):
            return cast(self, src, dst_type)
        if target == tl.bfloat16:
            return interpreter.TensorHandle(_to_bfloat16(src.data), target)
        wide = (src.data.astype(np.uint32) << 16).view(np.float32)
        return cast(self, interpreter.TensorHandle(wide, tl.float32), dst_type)

    def patch_tensor(tensor: Any, *rest: Any) -> None:
        """Triton 3.6 takes `int()` of an array of one element for a loop's bound; NumPy 2.5 refuses that."""
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter.InterpreterBuilder.cast_impl = cast_impl
    interpreter._patch_lang_tensor = patch_tensor


def _to_bfloat16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of numbers rounded to nearest, ties to even, by way of float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.ascontiguousarray(values.astype(np.float32))
    bits = wide.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded)
