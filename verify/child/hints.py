"""What a kernel tells the compiler of its values, which a GPU's code relies on, compared with the values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

_NAMES = ("multiple_of", "max_contiguous", "max_constancy")


@cache
def mend_hints(report: Callable[[str], None]) -> None:
    """Have `report` told of each hint that is false, with a counterexample. To be called when the language is patched.

    The interpreter itself raises where an assumption does not hold, and takes the other hints as they are.
    """
    from triton.runtime import interpreter

    def create_assume(self: Any, condition: Any) -> None:
        if not condition.data.all():
            report("tl.assume is told what does not hold")

    interpreter.InterpreterBuilder.create_assume = create_assume
    for module in (interpreter.tl, interpreter.tl.core):
        for name in _NAMES:
            setattr(module, name, _checked(interpreter.tl, name, getattr(module, name), report))


def _checked(tl: Any, name: str, original: Any, report: Callable[[str], None]) -> Any:
    def call(given: Any, values: Any, *rest: Any, **kwargs: Any) -> Any:
        result = original(given, values, *rest, **kwargs)
        if isinstance(given, tl.tensor):
            several = values if isinstance(values, list | tuple) else [values]
            step = given.dtype.element_ty.primitive_bitwidth // 8 if given.dtype.is_ptr() else 1
            for axis, value in enumerate(several):
                told = getattr(value, "value", value)
                data = given.handle.data if given.shape else given.handle.data.reshape(1)  # addresses fit too
                found = _counterexample(name, np.moveaxis(data, axis, -1).astype(np.int64), told, max(1, step))
                if found:
                    along = f" in dimension {axis}" if len(several) > 1 else ""
                    report(f"tl.{name} is told {told}{along}, and {found}")
        return result

    return call


def _counterexample(name: str, data: np.ndarray[Any, Any], told: int, step: int) -> str:
    """Where the values along the last axis are not as told, in words; empty if they are. step: from a value to the one
    that follows it, 1 or a pointer's bytes.

    As the compiler has it, the first values of contiguous runs are multiples, and blocks of `told` values are
    contiguous or equal.
    """
    if name == "multiple_of":
        first = np.ones(data.shape, dtype=bool)
        first[..., 1:] = data[..., 1:] != data[..., :-1] + data.dtype.type(step)
        wrong = first & (data % told != 0)
        return f"{_first(data, wrong)} is no multiple, nor follows the value before it" if wrong.any() else ""
    gap = step if name == "max_contiguous" else 0
    inside = np.arange(1, data.shape[-1]) % told != 0
    wrong = np.zeros(data.shape, dtype=bool)
    wrong[..., 1:] = inside & (data[..., 1:] != data[..., :-1] + gap)
    return f"{_first(data, wrong)} does not {'follow' if gap else 'equal'} the value before it" if wrong.any() else ""


def _first(data: np.ndarray[Any, Any], wrong: np.ndarray[Any, Any]) -> str:
    place = tuple(int(p[0]) for p in np.nonzero(wrong))
    return f"value {int(data[place])} at {list(place)}"
