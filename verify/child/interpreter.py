"""Triton's interpreter made to compute as compiled kernels do, where it does not.

Of Triton 3.6 to 3.9. Values of bfloat16 are their bits in uint16 there, and most of it takes them for integers; here
they are computed with in float32 and rounded to nearest even after each operation, as hardware does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from verify.child.folds import mend_folds
from verify.child.quick import quicken

_BFLOAT16, _FLOAT32 = "bf16", "fp32"  # names of types, which are compared faster than types
_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


@cache
def mend() -> None:
    """Mend the interpreter of this process."""
    from triton.runtime import interpreter

    quicken()
    _compute_once(interpreter)
    _mend_numbers(interpreter)
    _mend_conversions(interpreter)
    _mend_operators(interpreter)
    _mend_reductions(interpreter)
    mend_folds()
    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor: Any, *rest: Any) -> None:
        """Triton 3.6 takes `int()` of an array of one element for a loop's bound; NumPy 2.5 refuses that."""
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor
    _patch_once(interpreter)


def _compute_once(interpreter: Any) -> None:
    """Each sum, difference and product of integers is computed again in 64 bits, for an assertion that it does not
    overflow; without `debug` that is not looked at, and costs more than half of the time."""
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)


def _patch_once(interpreter: Any) -> None:
    """Each launch and each call between kernels searches the whole language for what to patch, and launches put it
    back; here it is patched once, since this process compiles nothing."""
    tl = interpreter.tl
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    patched = SimpleNamespace(restore=lambda: None)  # as a launch of Triton's own does when it ends
    interpreter._patch_lang = lambda fn: patched


def _mend_numbers(interpreter: Any) -> None:
    """Numbers that a kernel is launched with: Triton 3.6 puts a bool into 32 bits, and then finds that these are too
    many; and it holds from 2^31 to 2^32 as uint32, which overflows where the int64 of a compiled kernel does not."""
    convert = interpreter._implicit_cvt

    def implicit(arg: Any) -> Any:
        if isinstance(arg, bool):
            int1 = interpreter.tl.int1
            return interpreter.tl.tensor(interpreter.TensorHandle(np.array([arg], dtype=np.bool_), int1), int1)
        converted = convert(arg)
        if type(arg) is int and 2**31 <= arg < 2**32:
            converted.handle.data = converted.handle.data.astype(np.int64)
        return converted

    interpreter._implicit_cvt = implicit


def _mend_conversions(interpreter: Any) -> None:
    """It cuts float32 to bfloat16, and takes the numbers of other types for bits."""
    builder, bfloat16 = interpreter.InterpreterBuilder, interpreter.tl.bfloat16
    cast = builder.cast_impl

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        source, target = src.dtype.scalar, dst_type.scalar
        if source == target or bfloat16 not in (source, target):
            return cast(self, src, dst_type)
        if target == bfloat16:
            return interpreter.TensorHandle(_rounded(src.data), target)
        return cast(self, _wide(interpreter, src), dst_type)

    builder.cast_impl = cast_impl
    builder.get_bf16 = lambda self, value: cast_impl(self, self.get_fp32(value), bfloat16)  # Triton 3.6 has none


def _mend_operators(interpreter: Any) -> None:
    """What works element by element, and products of matrices."""
    builder = interpreter.InterpreterBuilder
    binary, unary, ternary = builder.binary_op, builder.unary_op, builder.ternary_op
    fma, dot = builder.create_fma, builder.create_dot

    def wide(handle: Any) -> Any:
        return _wide(interpreter, handle)

    def like(handle: Any, result: Any) -> Any:
        """The result in the type of one of the operands."""
        if handle.dtype.scalar.name != _BFLOAT16 or result.dtype.scalar.name != _FLOAT32:
            return result
        return interpreter.TensorHandle(_rounded(result.data), interpreter.tl.bfloat16)

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        result = binary(self, wide(lhs), wide(rhs), op)
        if op in _COMPARISONS:  # else of the operands' type, to which a scalar is converted where it is spread
            return interpreter.TensorHandle(result.data, interpreter.tl.int1)
        return like(lhs, result)

    def ternary_op(self: Any, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        if op is np.where:  # which computes nothing: NaN keeps its bits
            return ternary(self, lhs, rhs, other, op)
        return like(other, ternary(self, wide(lhs), wide(rhs), wide(other), op))

    builder.binary_op, builder.ternary_op = binary_op, ternary_op
    builder.unary_op = lambda self, arg, op: like(arg, unary(self, wide(arg), op))
    # Triton 3.6 spreads NaN in these, as in maximumf and minimumf.
    builder.create_maxnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmax)
    builder.create_minnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmin)
    clamp, spreads_none = builder.create_clampf, interpreter._ir.PROPAGATE_NAN.NONE

    def create_clampf(self: Any, arg: Any, lo: Any, hi: Any, spreads: Any) -> Any:
        if spreads != spreads_none:
            return clamp(self, arg, lo, hi, spreads)
        return self.create_maxnumf(self.create_minnumf(arg, hi), lo)  # an H200 makes the upper bound of NaN

    builder.create_clampf = create_clampf
    _flush(builder)
    builder.create_fma = lambda self, x, y, z: like(z, fma(self, wide(x), wide(y), wide(z)))
    builder.create_dot = lambda self, a, b, d, *rest: like(d, dot(self, wide(a), wide(b), wide(d), *rest))


def _flush(builder: Any) -> None:
    """What an H200 flushes denormals to zero for: arguments or results of functions that PTX has as `.ftz` alone.

    `tests/verify/language.json` is what it gives for all of them but exp2 and sin."""

    def flushed(handle: Any) -> Any:
        data = handle.data
        if data.dtype != np.float32:
            return handle
        small = np.abs(data) < np.finfo(np.float32).tiny
        return type(handle)(np.where(small, np.copysign(np.float32(0), data), data), handle.dtype.scalar)

    def of_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, arg: function(self, flushed(arg))

    def of_results(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, arg: flushed(function(self, arg))

    for name in ("create_ceil", "create_sqrt", "create_rsqrt", "create_sin", "create_erf"):
        setattr(builder, name, of_arguments(getattr(builder, name)))
    builder.create_exp2 = of_results(builder.create_exp2)


def _mend_reductions(interpreter: Any) -> None:
    """Those that NumPy does at once; the others combine elements by the operators above."""
    bfloat16, float32 = interpreter.tl.bfloat16, interpreter.tl.float32

    def narrowed(self: Any, tensor: Any) -> Any:
        if tensor.handle.dtype.scalar != float32:  # indices
            return tensor
        return self.to_tensor(_rounded(tensor.handle.data), bfloat16)

    def widened(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if tensor.handle.dtype.scalar != bfloat16:
                return method(self, tensor, *args, **kwargs)
            wide = self.to_tensor(_wide(interpreter, tensor.handle).data, float32)
            found = method(self, wide, *args, **kwargs)
            several = isinstance(found, list | tuple)
            return [narrowed(self, one) for one in found] if several else narrowed(self, found)

        return call

    for owner, names in ((interpreter.ReduceOps, ("sum", "min_max")), (interpreter.ScanOps, ("cumsum", "cumprod"))):
        for name in names:
            setattr(owner, name, widened(getattr(owner, name)))


def _wide(interpreter: Any, handle: Any) -> Any:
    """A handle of bfloat16 as one of float32; others as they are."""
    if handle.dtype.scalar.name != _BFLOAT16:
        return handle
    numbers = (handle.data.astype(np.uint32) << 16).view(np.float32)
    return interpreter.TensorHandle(numbers, interpreter.tl.float32)


def _rounded(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits in bfloat16 of numbers rounded to nearest, ties to even, by way of float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.ascontiguousarray(values.astype(np.float32))
    bits = wide.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded)
