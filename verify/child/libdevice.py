"""Implement CUDA's device library for Triton's interpreter, which has none.

The functions are those of `triton.language.extra.libdevice`.
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

    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    function = FUNCTIONS.get(name) or FUNCTIONS.get(name[:-1])  # names for float and double may end in a letter
    if function is None:
        raise NotImplementedError(f"libdevice's {symbol} is not known here; write it with functions of tl")
    inputs, scalar = [a.data for a in args], getattr(result, "scalar", result)
    with np.errstate(all="ignore"):
        values = np.asarray(function(*inputs))
    return TensorHandle(values.astype(inputs[0].dtype if scalar.is_floating() else np.int32), scalar)


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
