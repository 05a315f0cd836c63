"""Implement CUDA's device library for Triton's interpreter, which has none.

The functions are those of `triton.language.extra.libdevice`. Those named `fast_` are off by the largest error that CUDA
documents (CUDA C++ Programming Guide, "Mathematical Functions", intrinsic functions), up or down by their last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def mend_libdevice() -> None:
    """Make the interpreter in this process compute the functions of the device library."""
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as of_cuda
    from triton.runtime import interpreter

    for name, function in vars(of_cuda).copy().items():
        if getattr(function, "__triton_builtin__", False):
            for module in (libdevice, of_cuda):
                setattr(module, name, _with_semantic(function, interpreter))
    interpreter.InterpreterBuilder.create_extern_elementwise = _compute


def _with_semantic(function: Any, interpreter: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{**kwargs, "_semantic": interpreter.interpreter_semantic})

    return call


def _compute(self: Any, library: str, path: str, symbol: str, args: list[Any], result: Any, is_pure: bool) -> Any:
    """Compute one library function elementwise, if FUNCTIONS has it."""
    from triton.runtime.interpreter import TensorHandle

    fast = symbol.startswith("__nv_fast_")
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    function = FUNCTIONS.get(name) or FUNCTIONS.get(name[:-1])  # names for float and double may end in a letter
    if function is None:
        raise NotImplementedError(f"libdevice's {symbol} is not known here; write it with functions of tl")
    inputs, scalar = [a.data for a in args], getattr(result, "scalar", result)
    with np.errstate(all="ignore"):
        values = np.asarray(function(*inputs))
        if fast:
            values = _off(values, FAST_ERRORS[name](values, *(x.astype(np.float64) for x in inputs)))
    return TensorHandle(values.astype(inputs[0].dtype if scalar.is_floating() else np.int32), scalar)


def _off(values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return results that are off by an absolute error, upwards if their lowest bits are even."""
    up = np.ascontiguousarray(values, np.float32).view(np.uint32) & 1 == 0
    moved: np.ndarray = np.where(np.isfinite(values), values + np.where(up, error, -error), values)
    return moved


def _units(values: np.ndarray, count: Any) -> np.ndarray:
    """Return a number of units in the last place of float32 numbers."""
    spacing: np.ndarray = count * np.spacing(np.abs(values).astype(np.float32))
    return spacing


def _of_logarithm(near_1: float, units: int) -> Callable[..., np.ndarray]:
    """Return the error of a logarithm: absolute from 0.5 to 2, in units in the last place elsewhere."""
    return lambda values, x: np.where((x >= 0.5) & (x <= 2), near_1, _units(values, units))  # noqa: PLR2004


def _of_sine(near_0: float) -> Callable[..., np.ndarray]:
    """Return the error of a sine: absolute from -pi to pi, and proportional to the argument beyond, like a rounding."""
    return lambda values, x: near_0 * np.maximum(1, np.abs(x) / np.pi)


def _of_tangent(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    sine, cosine = FAST_ERRORS["sinf"](values, x), FAST_ERRORS["cosf"](values, x)
    worst: np.ndarray = np.abs(
        (np.sin(x) + np.copysign(sine, np.sin(x))) / (np.cos(x) - np.copysign(cosine, np.cos(x)))
    )
    error: np.ndarray = np.abs(worst - np.abs(np.tan(x)))
    return error


def _round(x: np.ndarray) -> np.ndarray:
    """Round halves away from zero, as C does."""
    whole = np.trunc(x)
    rounded: np.ndarray = whole + np.copysign(np.abs(x - whole) >= 0.5, x)  # noqa: PLR2004 - a half
    return rounded


def _each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return np.vectorize(function, otypes=[np.float64])


def _lgamma(x: float) -> float:
    infinite = math.isinf(x) or (x <= 0 and x == math.floor(x))
    return math.inf if infinite else math.lgamma(x)


_OF_NUMPY = (
    *("tanh", "tan", "sinh", "cosh", "trunc", "sin", "cos", "ceil", "floor", "exp", "exp2", "expm1", "log", "log2"),
    *("log10", "log1p", "fmod", "sqrt", "hypot", "copysign", "isnan", "isinf", "signbit", "nextafter", "rint", "cbrt"),
    *("fabs", "fmax", "fmin", "isfinite"),
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _OF_NUMPY},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    **{name: np.power for name in ("pow", "powi")},
    **{name: np.divide for name in ("fdivide", "div_rn", "fdiv_rn")},
    **{name: np.isfinite for name in ("finite", "isfinited")},
    "nearbyint": np.rint,  # rounds halves to even
    "round": _round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "exp10": lambda x: np.power(10.0, x),
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "lgamma": _each(_lgamma),
    "normcdf": _each(lambda x: math.erfc(-x / math.sqrt(2)) / 2),
}
# Name of a fast function -> its absolute error at a result, from the result and the arguments. A power is
# exp2(y * log2(x)).
FAST_ERRORS: dict[str, Callable[..., np.ndarray]] = {
    "logf": _of_logarithm(2**-21.41, 3),
    "log2f": _of_logarithm(2**-22, 2),
    "log10f": _of_logarithm(2**-24, 3),
    "expf": lambda values, x: _units(values, 2 + np.floor(np.abs(1.173 * x))),
    "exp10f": lambda values, x: _units(values, 2 + np.floor(np.abs(2.97 * x))),
    "sinf": _of_sine(2**-21.41),
    "cosf": _of_sine(2**-21.19),
    "tanf": _of_tangent,
    "powf": lambda values, x, y: np.abs(values * y) * FAST_ERRORS["log2f"](np.log2(x), x) + _units(values, 2),
    "fdividef": lambda values, x, y: np.where(np.abs(y) > 2.0**126, np.abs(values), _units(values, 2)),
}
