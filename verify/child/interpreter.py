"""Patch Triton's interpreter so that it computes like compiled kernels.

The patches are for Triton 3.6 to 3.9. The interpreter stores bfloat16 as bits in uint16 and mostly treats them as
integers. With these patches it computes in float32 and rounds to nearest even after each operation, like the
hardware.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from verify.child.folds import mend_folds
from verify.child.quick import quicken

LOOP = "__loop__"  # name for the function that replaces `range` in kernels' loops
_BFLOAT16, _FLOAT32 = "bf16", "fp32"  # type names compare faster than types
_COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


@cache
def mend() -> None:
    """Patch the interpreter in this process."""
    from triton.runtime import interpreter

    quicken()
    _compute_once(interpreter)
    _mend_numbers(interpreter)
    _mend_integers(interpreter)
    _mend_conversions(interpreter)
    _mend_operators(interpreter)
    _mend_reductions(interpreter)
    mend_folds()
    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor: Any, *rest: Any) -> None:
        """Convert a loop bound without `int()` of a one-element array, as in Triton 3.6, which NumPy 2.5 refuses."""
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor
    _patch_once(interpreter)
    _mend_loops(interpreter)


def _compute_once(interpreter: Any) -> None:
    """Switch off the overflow checks.

    The interpreter computes each integer sum, difference and product again in 64 bits to assert that it does not
    overflow. Without `debug` the assertion is ignored, yet it costs more than half of the time.
    """
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)


def _patch_once(interpreter: Any) -> None:
    """Patch the language once per process.

    Triton searches the whole language for functions to patch at each launch and at each call between kernels, and
    restores them after a launch. This process compiles nothing, so once is enough.
    """
    tl = interpreter.tl
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    patched = SimpleNamespace(restore=lambda: None)  # Triton calls restore() when a launch ends
    interpreter._patch_lang = lambda fn: patched


def _mend_loops(interpreter: Any) -> None:
    """Make the variable of a loop over `range` or `tl.range` a tensor, with the integer type of its bounds.

    The interpreter takes Python's integers, which have no methods and no end: a product of 32-bit offsets would not
    overflow as it does in a compiled kernel.
    """
    tl, semantic, rewriter = interpreter.tl, interpreter.interpreter_semantic, interpreter.FunctionRewriter

    def loop(arg1: Any, arg2: Any = None, step: Any = None, **options: Any) -> Iterator[Any]:
        """Yield the values of the loop's variable; the parameters are those of `tl.range`."""
        start, end = (0, arg1) if arg2 is None else (arg1, arg2)
        wanted = [semantic.to_tensor(bound) for bound in (start, end, 1 if step is None else step)]
        dtype = wanted[0].dtype
        for bound in wanted[1:]:
            dtype = semantic.integer_promote_impl(dtype, bound.dtype)
        numpy_type = interpreter._get_np_dtype(dtype)
        for value in range(*map(int, wanted)):
            yield tl.tensor(interpreter.TensorHandle(np.array([value], numpy_type), dtype), dtype)

    class Loops(ast.NodeTransformer):
        def visit_For(self, node: ast.For) -> ast.For:
            self.generic_visit(node)
            called = node.iter.func if isinstance(node.iter, ast.Call) else None
            if isinstance(called, ast.Name) and called.id == "range":
                called.id = LOOP
            return node

    transform = rewriter._transform_ast
    rewriter._transform_ast = lambda self, source: Loops().visit(transform(self, source))
    setattr(builtins, LOOP, loop)
    tl.range = loop


def _mend_numbers(interpreter: Any) -> None:
    """Fix the conversion of numbers that a kernel is launched with.

    Triton 3.6 puts a bool into 32 bits and then reports that these are too many. It stores integers from 2^31 to
    2^32 as uint32, which overflows in cases in which the int64 in a compiled kernel does not.
    """
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


def _mend_integers(interpreter: Any) -> None:
    """Let integers wrap and take part as their bits where Triton 3.6 raises OverflowError or extends the sign."""
    builder, base = interpreter.InterpreterBuilder, interpreter.ReduceScanOpInterface
    high, to_tensor = builder.create_umulhi, base.to_tensor

    def create_umulhi(self: Any, lhs: Any, rhs: Any) -> Any:
        unsigned = [replace(x, data=x.data.view(f"u{x.data.dtype.name}".replace("uu", "u"))) for x in (lhs, rhs)]
        return interpreter.TensorHandle(high(self, *unsigned).data.view(lhs.data.dtype), lhs.dtype.scalar)

    builder.create_umulhi = create_umulhi
    builder.get_all_ones_value = lambda self, type: interpreter.TensorHandle(
        ~np.zeros(1, interpreter._get_np_dtype(type)), type.scalar
    )
    base.to_tensor = lambda self, ret, dtype: to_tensor(
        self, np.asarray(ret).astype(interpreter._get_np_dtype(dtype), copy=False), dtype
    )


def _mend_conversions(interpreter: Any) -> None:
    """Fix conversions: the interpreter truncates float32 to bfloat16, and treats numbers of other types as bits."""
    builder, bfloat16 = interpreter.InterpreterBuilder, interpreter.tl.bfloat16
    cast = builder.cast_impl

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        source, target = src.dtype.scalar, dst_type.scalar
        if source == target or bfloat16 not in (source, target):
            return cast(self, src, dst_type)
        if target == bfloat16:
            return interpreter.TensorHandle(_rounded(src.data), target)
        return cast(self, _wide(interpreter, src), dst_type)

    convert, towards_zero = builder.create_fp_to_fp, interpreter._ir.ROUNDING_MODE.RTZ
    bits = {"fp16": np.uint16, _FLOAT32: np.uint32}  # bfloat16 is its bits

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding: Any) -> Any:
        """Convert as `cast` does, and step back to zero where that is asked for; the rest is float8."""
        source, target = src.dtype.scalar, dst_type.scalar
        if 8 in (source.primitive_bitwidth, target.primitive_bitwidth):
            return convert(self, src, dst_type, rounding)
        result = self.cast_impl(src, target)
        if rounding != towards_zero:
            return result
        number = result.data.view(bits.get(target.name, np.uint16))
        wide = _wide(interpreter, result).data.astype(np.float64)
        further = np.abs(wide) > np.abs(_wide(interpreter, src).data.astype(np.float64))
        return interpreter.TensorHandle((number - further).astype(number.dtype).view(result.data.dtype), target)

    builder.cast_impl, builder.create_fp_to_fp = cast_impl, create_fp_to_fp
    builder.get_bf16 = lambda self, value: cast_impl(self, self.get_fp32(value), bfloat16)  # missing in Triton 3.6


def _mend_operators(interpreter: Any) -> None:
    """Patch elementwise operators and matrix products."""
    builder = interpreter.InterpreterBuilder
    binary, unary, ternary = builder.binary_op, builder.unary_op, builder.ternary_op
    dot = builder.create_dot
    if hasattr(interpreter._interpreter, "fma_fp32"):
        fma = builder.create_fma
    else:  # Triton 3.6 multiplies, rounds, adds, and rounds again

        def fma(self: Any, x: Any, y: Any, z: Any) -> Any:
            return interpreter.TensorHandle(fused(x.data, y.data, z.data), z.dtype.scalar)

    def wide(handle: Any) -> Any:
        return _wide(interpreter, handle)

    def like(handle: Any, result: Any) -> Any:
        """Convert the result to bfloat16 if the operand has that type."""
        if handle.dtype.scalar.name != _BFLOAT16 or result.dtype.scalar.name != _FLOAT32:
            return result
        return interpreter.TensorHandle(_rounded(result.data), interpreter.tl.bfloat16)

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        result = binary(self, wide(lhs), wide(rhs), op)
        if op in _COMPARISONS:  # otherwise the result has the operands' type, to which a broadcast scalar is converted
            return interpreter.TensorHandle(result.data, interpreter.tl.int1)
        return like(lhs, result)

    def ternary_op(self: Any, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        if op is np.where:  # np.where computes nothing, so NaN keeps its bits
            return ternary(self, lhs, rhs, other, op)
        return like(other, ternary(self, wide(lhs), wide(rhs), wide(other), op))

    builder.binary_op, builder.ternary_op = binary_op, ternary_op
    builder.unary_op = lambda self, arg, op: like(arg, unary(self, wide(arg), op))
    # Triton 3.6 propagates NaN in these as it does in maximumf and minimumf.
    builder.create_maxnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmax)
    builder.create_minnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmin)
    clamp, propagate_none = builder.create_clampf, interpreter._ir.PROPAGATE_NAN.NONE

    def create_clampf(self: Any, arg: Any, lo: Any, hi: Any, propagate: Any) -> Any:
        if propagate != propagate_none:
            return clamp(self, arg, lo, hi, propagate)
        result = self.create_minnumf(self.create_maxnumf(arg, lo), hi)  # the lower bound for NaN, as on an H200
        x, low, high = (wide(handle).data for handle in (arg, lo, hi))
        if not np.array_equal(low, -high) or not np.isnan(x).any():
            return result
        # With one bound and its negative, PTX has min.xorsign.abs.
        bounds = np.where(np.isnan(x), np.copysign(high, x), wide(result).data).astype(x.dtype)
        return like(arg, replace(wide(result), data=bounds))

    builder.create_clampf = create_clampf
    _flush(builder)

    def create_frem(self: Any, lhs: Any, rhs: Any) -> Any:
        """Compute `%` of floats as LLVM does for NVIDIA's GPUs: x - trunc(x / y) * y, with one rounding."""
        x, y = lhs.data, rhs.data
        with np.errstate(all="ignore"):
            result = np.where(np.isinf(y), x, fused(-np.trunc(x / y), y, x))
        return interpreter.TensorHandle(result, lhs.dtype.scalar)

    builder.create_frem = create_frem
    builder.create_fma = lambda self, x, y, z: like(z, fma(self, wide(x), wide(y), wide(z)))
    builder.create_dot = lambda self, a, b, d, *rest: like(d, dot(self, wide(a), wide(b), wide(d), *rest))


def fused(x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z, rounded once.

    In float64, the product of smaller numbers is exact. The sum is rounded to odd there, so that rounding it again has
    no effect (Boldo and Melquiond, Emulation of a FMA and correctly rounded sums, 2008).
    """
    dtype = z.dtype
    with np.errstate(all="ignore"):
        if dtype == np.float64:
            return np.asarray(np.frompyfunc(_libm_fma(), 3, 1)(x, y, z), dtype)
        product, z = np.broadcast_arrays(np.multiply(x, y, dtype=np.float64), z.astype(np.float64))
        total = product + z
        part = total - product
        error = (product - (total - part)) + (z - part)
        even = (total.view(np.int64) & 1) == 0
        odd = np.nextafter(total, np.copysign(np.inf, error))
        return np.where(np.isfinite(error) & (error != 0) & even, odd, total).astype(dtype)


@cache
def _libm_fma() -> Any:
    function = ctypes.CDLL("libm.so.6").fma
    function.restype, function.argtypes = ctypes.c_double, (ctypes.c_double,) * 3
    return function


def _flush(builder: Any) -> None:
    """Flush denormals to zero in arguments or results of functions that PTX has only as `.ftz`, as an H200 does.

    `tests/verify/language.json` has the H200's results for all of them except exp2 and sin.
    """

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

    for name in ("create_ceil", "create_floor", "create_sqrt", "create_rsqrt", "create_sin", "create_erf"):
        setattr(builder, name, of_arguments(getattr(builder, name)))
    builder.create_exp2 = of_results(builder.create_exp2)


def _mend_reductions(interpreter: Any) -> None:
    """Patch the reductions that NumPy does in one call; the others use the operators patched above."""
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
            result = method(self, wide, *args, **kwargs)
            is_sequence = isinstance(result, list | tuple)
            return [narrowed(self, one) for one in result] if is_sequence else narrowed(self, result)

        return call

    for owner, names in ((interpreter.ReduceOps, ("sum", "min_max")), (interpreter.ScanOps, ("cumsum", "cumprod"))):
        for name in names:
            setattr(owner, name, widened(getattr(owner, name)))


def _wide(interpreter: Any, handle: Any) -> Any:
    """Return a bfloat16 handle as a float32 one; return others unchanged."""
    if handle.dtype.scalar.name != _BFLOAT16:
        return handle
    numbers = (handle.data.astype(np.uint32) << 16).view(np.float32)
    return interpreter.TensorHandle(numbers, interpreter.tl.float32)


def _rounded(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the bfloat16 bits of numbers rounded through float32 to nearest, ties to even."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.ascontiguousarray(values.astype(np.float32))
    bits = wide.view(np.uint32)
    # Adding 0x7FFF plus the lowest bit that remains rounds to nearest, with ties to even.
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded)
