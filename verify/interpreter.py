"""Triton's interpreter made to compute as compiled kernels do, where it does not."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


@cache
def mend() -> None:
    """Of Triton 3.6 to 3.9, in this process: what is done with bfloat16, and bounds of loops."""
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
        return cast(self, wide(src), dst_type)

    def widened(method: Any) -> Any:
        """Reductions and scans that NumPy does at once; the others combine elements by the operators above."""

        def call(self: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if tensor.handle.dtype.scalar != tl.bfloat16:
                return method(self, tensor, *args, **kwargs)
            found = method(self, self.to_tensor(wide(tensor.handle).data, tl.float32), *args, **kwargs)
            results = found if isinstance(found, list | tuple) else [found]
            narrow = [narrowed(self, r) if r.handle.dtype.scalar == tl.float32 else r for r in results]
            return narrow if isinstance(found, list | tuple) else narrow[0]

        return call

    def narrowed(self: Any, tensor: Any) -> Any:
        return self.to_tensor(_to_bfloat16(tensor.handle.data), tl.bfloat16)

    for owner, names in ((interpreter.ReduceOps, ("sum", "min_max")), (interpreter.ScanOps, ("cumsum", "cumprod"))):
        for name in names:
            setattr(owner, name, widened(getattr(owner, name)))

    def patch_tensor(tensor: Any, *rest: Any) -> None:
        """Triton 3.6 takes `int()` of an array of one element for a loop's bound; NumPy 2.5 refuses that."""
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    builder = interpreter.InterpreterBuilder
    binary, unary, ternary = builder.binary_op, builder.unary_op, builder.ternary_op
    fma, dot = builder.create_fma, builder.create_dot

    def wide(handle: Any) -> Any:
        """It computes with the bits of bfloat16 as if they were integers; hardware, with the numbers."""
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return interpreter.TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def like(handle: Any, result: Any) -> Any:
        narrow = handle.dtype.scalar == tl.bfloat16 and result.dtype.scalar == tl.float32
        return interpreter.TensorHandle(_to_bfloat16(result.data), tl.bfloat16) if narrow else result

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        result = binary(self, wide(lhs), wide(rhs), op)
        return result if op in _COMPARISONS else like(lhs, result)

    def ternary_op(self: Any, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        return like(other, ternary(self, wide(lhs), wide(rhs), wide(other), op))

    builder.cast_impl, builder.binary_op, builder.ternary_op = cast_impl, binary_op, ternary_op
    builder.unary_op = lambda self, arg, op: like(arg, unary(self, wide(arg), op))
    builder.get_bf16 = lambda self, value: cast_impl(self, self.get_fp32(value), tl.bfloat16)  # 3.6 has none
    builder.create_fma = lambda self, x, y, z: like(z, fma(self, wide(x), wide(y), wide(z)))
    builder.create_dot = lambda self, a, b, d, *rest: like(d, dot(self, wide(a), wide(b), wide(d), *rest))
    interpreter._patch_lang_tensor = patch_tensor


def _to_bfloat16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits of numbers rounded to nearest, ties to even, by way of float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.ascontiguousarray(values.astype(np.float32))
    bits = wide.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded)
