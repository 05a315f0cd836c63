"""Detect answers that a wrapper produces without kernels, which shows that ATen did their work."""

from __future__ import annotations

import torch

from traces.values import Packed
from verify.cases.case import Expected
from verify.cases.packed import contents, tensor_names
from verify.comparison.compare import comparable, is_copy, is_poison, right_elements, right_without_kernels, telling
from verify.comparison.laws import law_of


def conjured(overload: str, expected: Expected, ghost: Packed) -> str | None:
    """Return the reason if the answer was computed without kernels; None if kernels had to compute it.

    Kernels may start from fresh memory, from one constant everywhere, such as zeros to add to, or from the values
    of one argument, such as a copy to modify. Any other right elements were produced by fills and copies of
    parts.
    """
    if right_without_kernels(overload, expected, ghost):
        return "the result is right although no kernel ran: it was computed elsewhere"
    if law_of(overload) is not None or not comparable(expected, ghost):
        return None
    names = tensor_names(expected.native.tree)
    for i in telling(overload, expected):
        if not _beginning(contents(ghost, i), expected.before):
            right = right_elements(overload, expected, ghost, i)
            if right.any():
                prefix = (
                    f"{int(right.sum())} of {right.numel()} elements of {names[i]} are right although no kernel ran"
                )
                return f"{prefix}: let kernels store them, not fills and copies of parts"
    return None


def _beginning(values: torch.Tensor, before: Packed) -> bool:
    """Return True if memory was only allocated, filled with a constant, or copied from an argument."""
    return is_poison(values) or bool((values == values.reshape(-1)[0]).all()) or is_copy(values, before)
