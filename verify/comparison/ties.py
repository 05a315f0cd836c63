"""Handle indices that an operator leaves open: among equal elements, any may be returned."""

from __future__ import annotations

import torch

from traces.facts import tagged
from verify.cases.case import Expected
from verify.cases.packed import contents

_OPEN = tagged("open_ties")


def open_ties(overload: str, expected: Expected, index: int) -> bool:
    """Return True if tensor `index` of an answer has indices along `dim`, with a free choice between equal elements."""
    base = overload.removeprefix("aten::").partition(".")[0]
    result = index - len(expected.before.tensors)  # values come first, if there are any
    return base in _OPEN and result == (base != "argsort") and not expected.before.tree.get("stable")


def unordered(overload: str, expected: Expected) -> bool:
    """Return True if selected elements may be in any order, as for `topk` with sorted=False."""
    return overload.startswith("aten::topk") and expected.before.tree.get("sorted") is False


def in_order(expected: Expected, values: torch.Tensor) -> torch.Tensor:
    """Sort selected values along `dim`."""
    return values.sort(expected.before.tree.get("dim", -1)).values if values.dim() else values


def names_another(
    expected: Expected, native: torch.Tensor, got: torch.Tensor, values: torch.Tensor | None = None
) -> torch.Tensor:
    """Return True for an index that is out of range, selects a value other than ATen's, or repeats in its line.

    Args:
        expected: ATen's answer.
        native: ATen's indices, int64, in the shape of `self` except for dimension `dim`, which may be missing.
        got: The answer's indices, int64, in the shape of `native`.
        values: Values that the indices must select instead, if these have their own order.
    """
    x, dim = contents(expected.before, 0), expected.before.tree.get("dim", -1)
    if not x.dim():
        return got != native
    shape = native.shape
    if native.dim() < x.dim():
        native, got = native.unsqueeze(dim), got.unsqueeze(dim)
    inside = (got >= 0) & (got < x.shape[dim])
    clamped = got.where(inside, native)
    wanted, selected = x.gather(dim, native) if values is None else values, x.gather(dim, clamped)
    counts = (
        torch.zeros_like(x, dtype=torch.int64).scatter_add(dim, clamped, torch.ones_like(clamped)).gather(dim, clamped)
    )
    same = (wanted == selected) | (wanted.isnan() & selected.isnan())
    another: torch.Tensor = ~(inside & same) | (counts > 1)
    return another.reshape(shape)
