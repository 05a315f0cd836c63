"""Run reductions and scans with arbitrary functions in an order that differs from the element order.

On a GPU, a lane holds elements that are not adjacent, and the layout determines the combination order. A
reduction's function has to be associative and commutative, a scan's has to be associative. The order is the same
in every run.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def mend_folds() -> None:
    """Replace the reductions and scans of this process's interpreter, whose own loops visit elements in Python."""
    from triton.runtime import interpreter

    interpreter.ReduceOps.generic_reduce = _generic_reduce
    interpreter.ScanOps.generic_scan = _generic_scan
    standard, apply = interpreter.tl.standard, interpreter.ReduceOps.apply_impl
    fast = (standard._argmin_combine_tie_break_fast, standard._argmax_combine_tie_break_fast)

    def apply_impl(self: Any, values: Any) -> Any:
        """Do not return the first of equal elements if the function leaves the choice open."""
        return self.generic_reduce(values) if self.combine_fn in fast else apply(self, values)

    interpreter.ReduceOps.apply_impl = apply_impl


def _generic_reduce(self: Any, values: Any) -> list[Any]:
    """Combine pairs in a permuted order, then the results in pairs, and so on, with whole arrays at a time."""
    axis = self.axis
    arrays = [np.moveaxis(v.handle.data, axis, -1) if axis is not None else v.handle.data.reshape(-1) for v in values]
    layout = np.random.default_rng(arrays[0].shape[-1]).permutation(arrays[0].shape[-1])
    arrays = [a[..., layout] for a in arrays]
    while arrays[0].shape[-1] > 1:
        arrays = _combined(self, values, [a[..., ::2] for a in arrays], [a[..., 1::2] for a in arrays])
    results = []
    for array, value in zip(arrays, values, strict=True):
        one = array[..., 0]
        if self.keep_dims:
            one = np.expand_dims(one, axis) if axis is not None else one.reshape([1] * value.handle.data.ndim)
        results.append(self.to_tensor(one if one.shape else one.item(), value.dtype))
    return results


def _generic_scan(self: Any, values: Any) -> list[Any]:
    """Triple the window that ends at each element until it covers the prefix, with whole arrays at a time."""
    arrays = [np.moveaxis(v.handle.data, self.axis, -1) for v in values]
    size, length = arrays[0].shape[-1], 1
    while length < size:
        parts, short = arrays, np.arange(size) < length  # marks windows that begin with the first element
        for _ in range(2):  # first the window `length` before each element, then the one before that
            combined = _combined(self, values, [np.roll(a, length, -1) for a in arrays], parts)
            arrays = [np.where(short, p, f) for p, f in zip(parts, combined, strict=True)]
        length *= 3
    return [self.to_tensor(np.moveaxis(a, -1, self.axis), v.dtype) for a, v in zip(arrays, values, strict=True)]


def _combined(self: Any, values: Any, left: list[Any], right: list[Any]) -> list[Any]:
    """Apply the combine function to arrays of elements, in the types of `values`."""
    tensors = [self.to_tensor(a, v.dtype) for side in (left, right) for a, v in zip(side, values, strict=True)]
    result = self.combine_fn.fn(*tensors)
    results = result if isinstance(result, tuple) else (result,)
    return [self.to_tensor(f.handle.data, v.dtype).handle.data for f, v in zip(results, values, strict=True)]
