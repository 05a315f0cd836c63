"""Compare compiler hints in a kernel, which compiled code relies on, with the actual values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

_NAMES = ("multiple_of", "max_contiguous", "max_constancy")


@cache
def mend_hints(report: Callable[[str], None]) -> None:
    """Call `report` for each false hint, with a counterexample.

    To be called before the language is patched. The interpreter itself raises an error if an assumption is false,
    and does not check the other hints.
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
    def call(input: Any, values: Any, *rest: Any, **kwargs: Any) -> Any:  # a kernel may name both
        result = original(input, values, *rest, **kwargs)
        if isinstance(input, tl.tensor):
            hints = values if isinstance(values, list | tuple) else [values]
            step = input.dtype.element_ty.primitive_bitwidth // 8 if input.dtype.is_ptr() else 1
            for axis, value in enumerate(hints):
                claimed = getattr(value, "value", value)
                # for pointers, these are the addresses
                data = input.handle.data if input.shape else input.handle.data.reshape(1)
                counterexample = _counterexample(
                    name, np.moveaxis(data, axis, -1).astype(np.int64), claimed, max(1, step)
                )
                if counterexample:
                    suffix = f" in dimension {axis}" if len(hints) > 1 else ""
                    report(f"tl.{name} is told {claimed}{suffix}, and {counterexample}")
        return result

    return call


def _counterexample(name: str, data: np.ndarray[Any, Any], claimed: int, step: int) -> str:
    """Describe the first value along the last axis that contradicts a hint; return '' if there is none.

    As in the compiler, the first value in each contiguous run is a multiple, and blocks of `claimed` values are
    contiguous or equal.

    Args:
        name: `multiple_of`, `max_contiguous` or `max_constancy`.
        data: Values or addresses.
        claimed: Number in the hint.
        step: Difference between consecutive values: 1, or the element size in bytes for pointers.
    """
    if name == "multiple_of":
        first = np.ones(data.shape, dtype=bool)
        first[..., 1:] = data[..., 1:] != data[..., :-1] + data.dtype.type(step)
        wrong = first & (data % claimed != 0)
        return f"{_first(data, wrong)} is no multiple, nor follows the value before it" if wrong.any() else ""
    gap = step if name == "max_contiguous" else 0
    inside = np.arange(1, data.shape[-1]) % claimed != 0
    wrong = np.zeros(data.shape, dtype=bool)
    wrong[..., 1:] = inside & (data[..., 1:] != data[..., :-1] + gap)
    return f"{_first(data, wrong)} does not {'follow' if gap else 'equal'} the value before it" if wrong.any() else ""


def _first(data: np.ndarray[Any, Any], wrong: np.ndarray[Any, Any]) -> str:
    position = tuple(int(p[0]) for p in np.nonzero(wrong))
    return f"value {int(data[position])} at {list(position)}"
