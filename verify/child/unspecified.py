"""Return junk for values that Triton leaves unspecified, so that neither NumPy's nor a GPU's choice is relied on.

Lanes without a defined value are: masked-off lanes of a load without `other`, a cast to an integer type that
cannot hold the number, a division by zero, a shift by the width or more, and a gather from an index out of
bounds. A kernel may have such lanes if it does not use them.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np

# Each byte of a value. As floats: NaN, large, negative; as integers: -1, large, negative; as bool: True, False,
# False.
POISON = (0xFF, 0x5A, 0xDA)


class Unspecified:
    """Unspecified choices for one request.

    `seed` decides them. The order of lanes is the natural one for 0, and its reverse for 1. With `hardware`, they are
    those of a GPU: junk is 0, and arithmetic rounds as compilers and approximate instructions do
    (verify/child/numerics.py).
    """

    def __init__(self) -> None:
        self.configure(0)

    def configure(self, seed: int, hardware: bool = False) -> None:
        self.seed, self.hardware = seed, hardware
        self.__dict__.pop("_random", None)

    @cached_property
    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def order(self, count: int) -> np.ndarray[Any, Any]:
        """Return the indices of lanes, or of program instances, in running order."""
        if self.seed < 2:
            return np.arange(count) if self.seed == 0 else np.arange(count - 1, -1, -1)
        return self._random.permutation(count)

    def chance(self) -> bool:
        """Return a random bool; always False for seed 0, for which everything is in natural order."""
        return self.seed > 0 and bool(self._random.integers(2))

    def junk(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Return values that no lane may rely on.

        They repeat every 3 lanes, so neighbours along a power of two differ.
        """
        if self.hardware:
            return np.zeros(shape, dtype)
        values = _poisons(np.dtype(dtype))
        spread: np.ndarray[Any, Any] = values[(np.arange(np.prod(shape, dtype=int)) + self.seed) % len(values)]
        return spread.reshape(shape)

    def where(self, bad: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return `values` with junk in the `bad` lanes."""
        return np.where(bad, self.junk(values.shape, values.dtype), values) if bad.any() else values


unspecified = Unspecified()


@cache
def _poisons(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype == np.bool_:
        return np.array([byte == POISON[0] for byte in POISON])
    return np.frombuffer(b"".join(bytes([byte] * dtype.itemsize) for byte in POISON), dtype)


def poison(dtype: Any) -> Any:
    """Return the value that a forbidden lane loads: NaN, -1 or True."""
    return _poisons(np.dtype(dtype))[0]


@cache
def mend_undefined() -> None:
    """Make lanes without a defined value hold junk in this process's interpreter."""
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    _mend_loads(interpreter, builder)
    _mend_casts(interpreter, builder)
    _mend_integers(interpreter, builder)
    _mend_gathers(interpreter, builder)


def _mend_loads(interpreter: Any, builder: Any) -> None:
    masked_load = builder.create_masked_load

    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        if other is None and not mask.data.all():
            element = ptrs.get_element_ty()
            other = interpreter.TensorHandle(
                unspecified.junk(ptrs.data.shape, interpreter._get_np_dtype(element)), element
            )
        return masked_load(self, ptrs, mask, other, *rest, **named)

    builder.create_masked_load = create_masked_load
    _mend_numbers_given(interpreter)


def _mend_numbers_given(interpreter: Any) -> None:
    """Respect an `other` of 0 in a load of one element; the interpreter treats it as missing."""
    tl, semantic = interpreter.tl, type(interpreter.interpreter_semantic)
    load = semantic.load

    class Given(tl.tensor):  # type: ignore[name-defined, misc]
        __bool__ = lambda self: True  # noqa: E731

    def load_given(self: Any, ptr: Any, mask: Any, other: Any, *rest: Any) -> Any:
        if other is not None and not ptr.type.is_block():
            element = ptr.type.scalar.element_ty
            converted = self.cast(other, tl.int8 if element == tl.int1 else element)
            other = Given(converted.handle, converted.type)
        return load(self, ptr, mask, other, *rest)

    semantic.load = load_given


def _mend_casts(interpreter: Any, builder: Any) -> None:
    """Patch casts from floats to integers: hardware saturates or not, depending on maker, width and sign."""

    def cast(self: Any, src: Any, dst_type: Any) -> Any:
        with np.errstate(invalid="ignore"):
            result = self.cast_impl(src, dst_type)
        whole = np.trunc(self.cast_impl(src, interpreter.tl.float64).data)
        limits = np.iinfo(result.data.dtype)
        fits = (whole >= float(limits.min)) & (whole < float(limits.max + 1))
        result.data = unspecified.where(~fits, result.data)
        return result

    builder.create_fp_to_si = builder.create_fp_to_ui = cast


def _mend_integers(interpreter: Any, builder: Any) -> None:
    """Patch division by zero, and shifts by the width or more."""

    def mended(name: str, wrong: Any) -> None:
        original = getattr(builder, name)

        def call(self: Any, lhs: Any, rhs: Any) -> Any:
            bad = wrong(lhs, rhs)
            if not bad.any():
                return original(self, lhs, rhs)
            with np.errstate(divide="ignore", invalid="ignore"):
                result = original(self, lhs, rhs)
            result.data = unspecified.where(np.broadcast_to(bad, result.data.shape), result.data)
            return result

        setattr(builder, name, call)

    for name in ("create_sdiv", "create_udiv", "create_srem", "create_urem"):
        mended(name, lambda lhs, rhs: rhs.data == 0)
    for name in ("create_shl", "create_lshr", "create_ashr"):
        mended(name, lambda lhs, rhs: (rhs.data < 0) | (rhs.data >= lhs.data.dtype.itemsize * 8))


def _mend_gathers(interpreter: Any, builder: Any) -> None:
    """Patch gathers: NumPy counts negative indices from the end."""

    def create_gather(self: Any, src: Any, indices: Any, axis: int) -> Any:
        at = indices.data
        outside = (at < 0) | (at >= src.data.shape[axis])
        gathered = np.take_along_axis(src.data, np.where(outside, 0, at), axis=axis)
        return interpreter.TensorHandle(unspecified.where(outside, gathered), src.dtype.scalar)

    builder.create_gather = create_gather
