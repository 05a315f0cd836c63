"""Indices that an operator leaves open: of several equal elements, any may be named."""

from __future__ import annotations

import torch

from traces.facts import tagged
from verify.cases.case import Expected, contents

_OPEN = tagged("open_ties")


def open_ties(overload: str, expected: Expected, index: int) -> bool:
    """Whether tensor `index` of an answer names elements of `self` along `dim`, any of several that are equal."""
    base = overload.removeprefix("aten::").partition(".")[0]
    result = index - len(expected.before.tensors)  # values come first, if there are any
    return base in _OPEN and result == (base != "argsort") and not expected.before.tree.get("stable")


def unordered(overload: str, expected: Expected) -> bool:
    """Whether elements that are chosen may stand in any order: of `topk` that is not to sort them."""
    return overload.startswith("aten::topk") and expected.before.tree.get("sorted") is False


def in_order(expected: Expected, values: torch.Tensor) -> torch.Tensor:
    """Chosen values, sorted along `dim`."""
    return values.sort(expected.before.tree.get("dim", -1)).values if values.dim() else values


def names_another(
    expected: Expected, native: torch.Tensor, got: torch.Tensor, values: torch.Tensor | None = None
) -> torch.Tensor:
    """True where an index is out of range, names another value than ATen's does, or stands twice in its line.

    native, got: int64, of one shape: that of `self`, but for the dimension `dim`, which may be missing. values: what
    indices are to name instead, where they are in an order of their own.
    """
    x, dim = contents(expected.before, 0), expected.before.tree.get("dim", -1)
    if not x.dim():
        return got != native
    shape = native.shape
    if native.dim() < x.dim():
        native, got = native.unsqueeze(dim), got.unsqueeze(dim)
    inside = (got >= 0) & (got < x.shape[dim])
    chosen = got.where(inside, native)
    wanted, named = x.gather(dim, native) if values is None else values, x.gather(dim, chosen)
    times = torch.zeros_like(x, dtype=torch.int64).scatter_add(dim, chosen, torch.ones_like(chosen)).gather(dim, chosen)
    same = (wanted == named) | (wanted.isnan() & named.isnan())
    another: torch.Tensor = ~(inside & same) | (times > 1)
    return another.reshape(shape)
