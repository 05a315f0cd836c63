"""The accuracy report: where and how two tensors differ, small enough for a prompt and the same on every machine."""

from __future__ import annotations

import torch

WORST = 5  # elements listed


def accuracy_report(name: str, got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> tuple[str, str]:
    """One line, and the report. `wrong` marks the elements outside the tolerance; all three have one shape."""
    count, total = int(wrong.sum()), wrong.numel()
    line = f"{name}: {count} of {total} elements wrong"
    if not got.dim():
        got, expected, wrong = got[None], expected[None], wrong[None]
    pattern = _pattern(got, expected, wrong)
    lines = [
        f"{line}{f' ({pattern})' if pattern else ''}",
        f"  got      {summary(got)}",
        f"  expected {summary(expected)} (the reference)",
        "  worst elements (index: got, expected):",
        *(f"    {index}: {_number(g)}, {_number(e)}" for index, g, e in _worst(got, expected, wrong)),
    ]
    return f"{line}{f', {pattern}' if pattern else ''}", "\n".join(lines)


def summary(t: torch.Tensor) -> str:
    """Shape, dtype, range, mean, and how many are NaN, infinite or zero."""
    head = f"shape {list(t.shape)} {str(t.dtype).removeprefix('torch.')}"
    if not t.numel():
        return f"{head}, empty"
    wide = t.to(torch.float64) if not t.is_complex() else t.abs().to(torch.float64)
    if not t.is_floating_point() and not t.is_complex():
        head += f", {torch.unique(t).numel()} distinct values"
    finite = wide[wide.isfinite()]
    odd = {"NaN": int(wide.isnan().sum()), "inf": int(wide.isinf().sum()), "zero": int((wide == 0).sum())}
    counts = "".join(f", {n} {what}" for what, n in odd.items() if n)
    if not finite.numel():
        return head + counts
    return f"{head}, min {_number(finite.min())}, max {_number(finite.max())}, mean {_number(finite.mean())}{counts}"


def _number(value: torch.Tensor) -> str:
    """Four significant digits: what two processors round differently stays out of the text."""
    item = value.item()
    return f"{item:.4g}" if isinstance(item, float) else str(item)


def _worst(
    got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor
) -> list[tuple[list[int], torch.Tensor, torch.Tensor]]:
    error = (got.to(torch.float64) - expected.to(torch.float64)).abs().nan_to_num(float("inf"), posinf=float("inf"))
    error = torch.where(wrong, error, torch.full_like(error, -1.0)).flatten()
    order = error.argsort(descending=True, stable=True)[: min(WORST, int(wrong.sum()))]
    places = [[int(i) for i in torch.unravel_index(k, wrong.shape)] for k in order]
    return [(place, got[tuple(place)], expected[tuple(place)]) for place in places]


def _pattern(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """What the wrong elements have in common, in words: what they hold, and where they are; or nothing."""
    flat = wrong.flatten()
    first, last = int(flat.nonzero()[0]), int(flat.nonzero()[-1])
    values = [
        (bool(got[wrong].isnan().all()) and not bool(expected[wrong].isnan().any()), "NaN where a number is expected"),
        (bool((got[wrong] == 0).all()), "0 where another value is expected"),
    ]
    places = [
        (first > 0 and bool(flat[first:].all()), f"from flat index {first} on"),
        (last < flat.numel() - 1 and bool(flat[: last + 1].all()), f"up to flat index {last}"),
        *((_confined(wrong, d), f"only at index {_place(wrong, d)} of dimension {d}") for d in range(wrong.dim())),
        *_whole_slices(wrong),
    ]
    found = [next((text for applies, text in kind if applies), "") for kind in (values, places)]
    return ", ".join(filter(None, found))


def _whole_slices(wrong: torch.Tensor) -> list[tuple[bool, str]]:
    """Where the wrong elements fill whole slices of a dimension, which of its indices are wrong."""
    found = []
    for dim in range(wrong.dim() if wrong.dim() > 1 else 0):
        rows = wrong.movedim(dim, 0).flatten(1)
        touched = rows.any(1)
        which = [int(i) for i in touched.nonzero()[:, 0]]
        listed = ", ".join(map(str, which[:8])) + (", ..." if len(which) > 8 else "")
        whole = bool((rows.all(1) == touched).all()) and len(which) < len(touched)
        found.append((whole, f"all of indices {listed} of dimension {dim}"))
    return found


def _place(wrong: torch.Tensor, dim: int) -> int:
    return int(wrong.nonzero()[0, dim])


def _confined(wrong: torch.Tensor, dim: int) -> bool:
    return wrong.shape[dim] > 1 and int((wrong.nonzero()[:, dim] != _place(wrong, dim)).sum()) == 0
