"""Make Triton's interpreter compute float32 as hardware may.

A chip flushes denormal numbers or has less precise products, if its platform file says so. NVIDIA's GPUs read the
operands of a product as TF32. In a repeat, quotients are one unit in the last place off, and a product and a sum become
one operation with one rounding, as compilers for GPUs make it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from verify.child.unspecified import unspecified
from verify.limits import PRECISIONS, ChipLimits

_MANTISSA = PRECISIONS["ieee"]  # a float32's explicit bits
# The interpreter builder's functions through which numbers are computed, loaded and stored; others use these.
_COMPUTING = (
    *("binary_op", "unary_op", "ternary_op", "cast_impl", "create_fma", "create_erf", "create_rsqrt", "create_dot"),
    *("create_dot_scaled", "create_extern_elementwise", "create_masked_load", "create_masked_store"),
    "create_atomic_rmw",
)


def patch_numerics(limits: ChipLimits, backends: Collection[str]) -> None:
    """Make the interpreter in this process compute as a chip with these limits, or as the targets' Triton backends."""
    _contract()
    _approximate_quotients()
    if precision := limits.dot_precision or ("tf32" if "cuda" in backends else ""):
        _truncate_products(precision)
    if limits.flush_denormals:
        _flush_denormals()


def _contract() -> None:
    """Compute a sum with a float32 product as one operation, in a repeat: Triton lets LLVM contract them."""
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    multiply = builder.create_fmul

    def create_fmul(self: Any, lhs: Any, rhs: Any) -> Any:
        result = multiply(self, lhs, rhs)
        if unspecified.hardware and result.data.dtype == np.float32:
            result.factors = lhs.data, rhs.data
        return result

    def contracted(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
        def call(self: Any, lhs: Any, rhs: Any) -> Any:
            result = function(self, lhs, rhs)
            product, other, signs = (lhs, rhs, (1, sign)) if hasattr(lhs, "factors") else (rhs, lhs, (sign, 1))
            if not hasattr(product, "factors"):
                return result
            # A product of two float32 numbers is exact in float64; its sum is rounded to float64 and then to float32,
            # which differs from one rounding in one of 2^29 cases.
            with np.errstate(all="ignore"):
                x, y = (factor.astype(np.float64) for factor in product.factors)
                whole = signs[0] * (x * y) + signs[1] * other.data.astype(np.float64)
                return type(result)(whole.astype(np.float32), result.dtype.scalar)

        return call

    builder.create_fmul = create_fmul
    builder.create_fadd, builder.create_fsub = contracted(builder.create_fadd, 1), contracted(builder.create_fsub, -1)


def _approximate_quotients() -> None:
    """Let inexact quotients of float32 be off by one unit in the last place, in a repeat.

    A division is `div.full.f32` in PTX, which is off by two at most. `tl.div_rn` is rounded to nearest.
    """
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    divide = builder.create_fdiv

    def create_fdiv(self: Any, lhs: Any, rhs: Any) -> Any:
        result = divide(self, lhs, rhs)
        if not unspecified.hardware or result.data.dtype != np.float32:
            return result
        with np.errstate(all="ignore"):
            inexact = result.data.astype(np.float64) * rhs.data != lhs.data  # the product is exact in float64
            inexact &= np.isfinite(result.data)  # what overflows, and a quotient by zero, stays infinite
            bits = result.data.view(np.uint32)
            # which way: by a bit of the quotient, so that equal operands have equal quotients
            towards = np.where(bits & np.uint32(4), np.float32(np.inf), np.float32(0))
            moved = np.nextafter(result.data, np.copysign(towards, result.data))
        usual = inexact & np.isfinite(moved) & (np.abs(result.data) > np.finfo(np.float32).tiny)
        return type(result)(np.where(usual, moved, result.data), result.dtype.scalar)

    builder.create_fdiv = create_fdiv


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
