"""Describe how two tensors differ, in a report that fits into a prompt; four digits make it alike on most machines."""

from __future__ import annotations

import torch

from verify.comparison.patterns import pattern

WORST = 5  # elements listed
TINY = 8  # largest tensor whose values are all shown, in elements


def accuracy_report(name: str, got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> tuple[str, str]:
    """Return a one-line summary and the report.

    Args:
        name: Tensor name.
        got: Tensor in the answer.
        expected: Reference with the same shape.
        wrong: Mask for the elements outside the tolerance, with the same shape.
    """
    count, total = int(wrong.sum()), wrong.numel()
    line = f"{name}: {count} of {total} elements wrong"
    summaries = summary(got), summary(expected)
    if not got.dim():
        got, expected, wrong = got[None], expected[None], wrong[None]
    common = pattern(got, expected, wrong)
    lines = [
        f"{line}{f' ({common})' if common else ''}",
        f"  got      {summaries[0]}",
        f"  expected {summaries[1]} (the reference)",
        "  worst elements (index: got, expected):",
        *(f"    {index}: {_number(g)}, {_number(e)}" for index, g, e in _worst(got, expected, wrong)),
    ]
    return f"{line}{f', {common}' if common else ''}", "\n".join(lines)


def values(t: torch.Tensor) -> str:
    """Format all values of a tensor with at most TINY elements; return '' for a larger one."""
    if not 0 < t.numel() <= TINY:
        return ""
    return ", ".join(_number(v) for v in t.flatten())


def summary(t: torch.Tensor) -> str:
    """Describe shape, dtype, range and mean, and count the NaN, infinite and zero elements."""
    head = f"shape {list(t.shape)} {str(t.dtype).removeprefix('torch.')}"
    if not t.numel():
        return f"{head}, empty"
    wide = t.to(torch.float64) if not t.is_complex() else t.abs().to(torch.float64)
    if not t.is_floating_point() and not t.is_complex():
        head += f", {torch.unique(t).numel()} distinct values"
    finite = wide[wide.isfinite()]
    special = {"NaN": int(wide.isnan().sum()), "inf": int(wide.isinf().sum()), "zero": int((wide == 0).sum())}
    counts = "".join(f", {n} {label}" for label, n in special.items() if n)
    if not finite.numel():
        return head + counts
    return f"{head}, min {_number(finite.min())}, max {_number(finite.max())}, mean {_number(finite.mean())}{counts}"


def _number(value: torch.Tensor) -> str:
    """Format a number with four significant digits, so that differences in rounding between processors do not show."""
    item = value.item()
    return f"{item:.4g}" if isinstance(item, float) else str(item)


def _worst(
    got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor
) -> list[tuple[list[int], torch.Tensor, torch.Tensor]]:
    error = (got.to(torch.float64) - expected.to(torch.float64)).abs().nan_to_num(float("inf"), posinf=float("inf"))
    error = torch.where(wrong, error, torch.full_like(error, -1.0)).flatten()
    order = error.argsort(descending=True, stable=True)[: min(WORST, int(wrong.sum()))]
    positions = [[int(i) for i in torch.unravel_index(k, wrong.shape)] for k in order]
    return [(position, got[tuple(position)], expected[tuple(position)]) for position in positions]
