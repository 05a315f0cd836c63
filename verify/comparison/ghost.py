"""What a wrapper leaves in its answer where kernels do nothing: whether ATen did their work."""

from __future__ import annotations

import torch

from traces.values import Packed
from verify.cases.case import Expected, contents, tensor_names
from verify.comparison.compare import comparable, is_copy, is_poison, right_elements, right_without_kernels, telling
from verify.comparison.laws import law_of


def conjured(overload: str, expected: Expected, ghost: Packed) -> str | None:
    """Why the answer was computed elsewhere; None if kernels had to do it.

    Kernels may begin with fresh memory, with one constant everywhere, as zeros to add to, or with the values of one
    argument, as a copy to change. Whatever else is there and right was made by fills and copies of parts.
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
                what = f"{int(right.sum())} of {right.numel()} elements of {names[i]} are right although no kernel ran"
                return f"{what}: let kernels store them, not fills and copies of parts"
    return None


def _beginning(values: torch.Tensor, before: Packed) -> bool:
    """Whether nothing more was done than to allocate, fill with a constant, or copy an argument."""
    return is_poison(values) or bool((values == values.reshape(-1)[0]).all()) or is_copy(values, before)
