"""Make Triton's interpreter compute as a chip that flushes denormal numbers, or whose products are less precise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from verify.limits import PRECISIONS, ChipLimits

_MANTISSA = PRECISIONS["ieee"]  # a float32's explicit bits
# The interpreter builder's functions through which numbers are computed, loaded and stored; others use these.
_COMPUTING = (
    *("binary_op", "unary_op", "ternary_op", "cast_impl", "create_fma", "create_erf", "create_rsqrt", "create_dot"),
    *("create_dot_scaled", "create_extern_elementwise", "create_masked_load", "create_masked_store"),
    "create_atomic_rmw",
)


def patch_numerics(limits: ChipLimits) -> None:
    """Apply the limits on numbers to the interpreter in this process."""
    if limits.dot_precision:
        _truncate_products(limits.dot_precision)
    if limits.flush_denormals:
        _flush_denormals()


def _truncate_products(default: str) -> None:
    """Truncate the operands of each product to its precision; `default` is that of products that state none."""
    from triton import knobs
    from triton.runtime import interpreter

    # without a default here, Triton's is tf32, and `allow_tf32=False` has an effect
    knobs.language.fp32_default = None if default == "tf32" else default
    now, builder = interpreter.interpreter_builder, interpreter.InterpreterBuilder
    now.options = replace(now.options, allowed_dot_input_precisions=tuple(PRECISIONS))
    dot = builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, d: Any, precision: Any, *rest: Any) -> Any:
        bits = PRECISIONS[precision.name.lower()]
        return dot(self, _truncated(a, bits), _truncated(b, bits), d, precision, *rest)

    builder.create_dot = create_dot


def _truncated(handle: Any, bits: int) -> Any:
    """Return float32 numbers with only these many bits of their mantissa, as NVIDIA's tensor cores read TF32."""
    if handle.data.dtype != np.float32 or bits == _MANTISSA:
        return handle
    mask = np.uint32(2**32 - 2 ** (_MANTISSA - bits))
    return replace(handle, data=(np.ascontiguousarray(handle.data).view(np.uint32) & mask).view(np.float32))


def _flush_denormals() -> None:
    """Flush denormal numbers to zero in the operands and the results of all functions that compute.

    The result of a reduction is flushed by the function that uses it.
    """
    from triton.runtime import interpreter

    def flushing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return flushed(function(self, *map(flushed, args), **kwargs))

        return call

    def flushed(value: Any) -> Any:
        return _flushed(value) if isinstance(value, interpreter.TensorHandle) else value

    for name in _COMPUTING:
        if hasattr(interpreter.InterpreterBuilder, name):  # older versions have no scaled products
            setattr(interpreter.InterpreterBuilder, name, flushing(getattr(interpreter.InterpreterBuilder, name)))


def _flushed(handle: Any) -> Any:
    """Return float32 or bfloat16 numbers with zeros of the same sign for denormal ones; return others unchanged."""
    data = handle.data
    if data.dtype == np.float32:
        zero = np.copysign(np.float32(0), data)
        return replace(handle, data=np.where(np.abs(data) < np.finfo(np.float32).tiny, zero, data))
    if data.dtype == np.uint16 and handle.dtype.scalar.name == "bf16":  # the interpreter has its bits
        return replace(handle, data=np.where(data & np.uint16(0x7F80), data, data & np.uint16(0x8000)))
    return handle
