"""Describe the wrong elements' common properties in a result: their values and their positions.

Each finder returns a phrase or ''. `got` and `expected` have the same shape with at least one dimension. `wrong`
marks the elements outside the tolerance, and at least one is True.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch

from verify.child.fresh import OTHER

MOST_MOVED = 1 << 20  # elements of a tensor that is searched for displaced values
FARTHEST = 3  # largest displacement of values, in indices
CLOSE = 0.01  # largest error, relative to the largest value, that may be due to precision
_ENOUGH = 4  # minimum elements for a relation, so that it does not occur by chance
_NEARLY_ALL = 0.9

Finder = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], str]


def pattern(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """Return the first matching phrase about values and the first about positions, separated by a comma, or ''."""
    values = (_unwritten, _nan, _infinite, _zero, _relation, _constant, _moved, _precision)
    kinds: tuple[tuple[Finder, ...], ...] = (values, (_ends, _one_index, _whole_slices, _every_nth))
    phrases = [next(filter(None, (find(got, expected, wrong) for find in finders)), "") for finders in kinds]
    return ", ".join(filter(None, phrases))


def _unwritten(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    actual = got[wrong]
    if actual.dtype is torch.bool:
        return ""
    other = torch.full((actual.element_size(),), OTHER, dtype=torch.uint8).view(actual.dtype)[0]
    filled = actual.isnan() if actual.is_floating_point() else actual == torch.iinfo(actual.dtype).max
    marked = actual == other
    never = bool(marked.any()) and bool((marked | filled).all())
    return "never stored: they hold what fresh memory is filled with" if never else ""


def _nan(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    actual, wanted = got[wrong], expected[wrong]
    if bool(actual.isnan().all()) and not bool(wanted.isnan().any()):
        zero, infinite = bool((wanted == 0).all()), bool(wanted.isinf().all())
        return f"NaN where {'0' if zero else 'infinity' if infinite else 'a number'} is expected"
    if bool(wanted.isnan().all()) and not bool(actual.isnan().any()):
        return f"{'0' if bool((actual == 0).all()) else 'a number'} where NaN is expected"
    return ""


def _infinite(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    actual_infinite, expected_infinite = got[wrong].isinf(), expected[wrong].isinf()
    if bool(actual_infinite.all()) and not bool(expected_infinite.any()):
        return "infinity where a finite number is expected"
    return (
        "a finite number where infinity is expected"
        if bool(expected_infinite.all()) and not bool(actual_infinite.any())
        else ""
    )


def _zero(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    return "0 where another value is expected" if bool((got[wrong] == 0).all()) else ""


def _constant(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    actual = got[wrong]
    same = len(actual) >= _ENOUGH and bool((actual == actual[0]).all())
    return f"all of them {_number(actual[0])}" if same else ""


def _relation(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """Find a sign, a factor or a summand by which all wrong elements differ."""
    actual, wanted = got[wrong].to(torch.float64), expected[wrong].to(torch.float64)
    if len(actual) < _ENOUGH or not bool((actual.isfinite() & wanted.isfinite()).all()):
        return ""
    if len(torch.unique(wanted)) < 2:
        return ""
    close = _closeness(got.dtype)
    if _near(actual, -wanted, close):
        return "the negative of what is expected"
    factor, summand = (actual / wanted).median(), (actual - wanted).median()
    significant = bool(factor.isfinite()) and abs(factor) > close and abs(factor - 1) > 2 * close
    if significant and _near(actual, factor * wanted, close):
        return f"{_number(factor)} times what is expected"
    clear = abs(summand) > 4 * close * wanted.abs().max()
    if clear and bool(((actual - wanted - summand).abs() <= close * (actual.abs() + wanted.abs())).all()):
        return f"what is expected {'+' if summand > 0 else '-'} {_number(summand.abs())}"
    return ""


def _moved(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """Find right values in wrong positions."""
    few = len(torch.unique(expected)) <= _ENOUGH
    if got.numel() > MOST_MOVED or few or int(wrong.sum()) * 2 < wrong.numel():
        return ""
    close = _closeness(got.dtype)
    got, expected = got.to(torch.float64), expected.to(torch.float64)
    # before the last dimension, because such a shift also shifts most elements along that dimension
    for by in (1, -1, 2, -2):
        if got.dim() > 1 and _shifted(got.flatten(), expected.flatten(), by, 0, close, share=0.99):
            return f"flat index i holds what belongs to flat index i {'+' if by > 0 else '-'} {abs(by)}"
    shifts = ((by * sign, d) for by in range(1, FARTHEST + 1) for sign in (1, -1) for d in range(got.dim()))
    for by, dim in shifts:
        if _shifted(got, expected, by, dim, close):
            return f"index i of dimension {dim} holds what belongs to index i {'+' if by > 0 else '-'} {abs(by)}"
    for a, b in itertools.combinations(range(got.dim()), 2):
        if min(got.shape[a], got.shape[b]) > 1 and _near(got.flatten(), expected.transpose(a, b).flatten(), close):
            return f"the right values in the order of the result with dimensions {a} and {b} swapped"
    ordered = _near(got.flatten().sort().values, expected.flatten().sort().values, close)
    return "the right values in another order" if ordered else ""


def _shifted(  # noqa: PLR0913 - two tensors, and the parameters of the shift
    got: torch.Tensor, expected: torch.Tensor, by: int, dim: int, close: float, share: float = _NEARLY_ALL
) -> bool:
    """Return True if nearly all elements satisfy `got[i] == expected[i + by]` along `dim`."""
    length = got.shape[dim] - abs(by)
    if length < 1 or length * got.numel() // got.shape[dim] < _ENOUGH:
        return False
    overlap = got.narrow(dim, max(0, -by), length)
    return _near(overlap, expected.narrow(dim, max(0, by), length), close, share)


def _precision(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    if not got.is_floating_point():
        return ""
    actual, wanted = got[wrong].to(torch.float64), expected[wrong].to(torch.float64)
    largest = expected.to(torch.float64).abs().nan_to_num(0.0, posinf=0.0).max()
    error = (actual - wanted).abs().max()
    if not bool(error <= CLOSE * largest):
        return ""
    return f"off by at most {_number(error / largest)} of the largest value, which may be a matter of precision"


def _ends(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """Find wrong elements from some index on, or up to one: in the flat tensor, or along a dimension."""
    flat = wrong.flatten()
    first, last, size = int(flat.nonzero()[0]), int(flat.nonzero()[-1]), flat.numel()
    if any(bool(wrong.select(dim, index).all()) for dim, index in _confined(wrong)):
        return ""  # a whole slice is better described as such
    if first and _fills(flat[first:], first):
        return f"from flat index {first} on"
    if last < size - 1 and _fills(flat[: last + 1], size - 1 - last):
        return f"up to flat index {last}"
    for dim in range(wrong.dim() if wrong.dim() > 1 else 0):
        rows = wrong.movedim(dim, 0).flatten(1)
        indices = rows.any(1).nonzero()[:, 0]
        low, high = int(indices[0]), int(indices[-1])
        if low and high == len(rows) - 1 and high > low and _fills(rows[low:], low):
            return f"from index {low} of dimension {dim} on"
    return ""


def _fills(part: torch.Tensor, right: int) -> bool:
    """Return True if all of a part is wrong, or nearly all if the number of `right` others excludes chance."""
    return bool(part.all()) or (right >= 32 and int(part.sum()) >= _NEARLY_ALL * part.numel())


def _confined(wrong: torch.Tensor) -> list[tuple[int, int]]:
    """Return dimensions in which only one index is wrong, with that index."""
    positions = wrong.nonzero()
    return [
        (d, int(positions[0, d]))
        for d in range(wrong.dim())
        if wrong.shape[d] > 1 and bool((positions[:, d] == positions[0, d]).all())
    ]


def _one_index(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    for dim, index in _confined(wrong):
        last = " (the last)" if index == wrong.shape[dim] - 1 else ""
        return f"only at index {index} of dimension {dim}{last}"
    return ""


def _touched(wrong: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, list[int]]]:
    """Yield each dimension with its flattened slices, and the indices of slices that contain wrong elements."""
    for dim in range(wrong.dim()):
        rows = wrong.movedim(dim, 0).flatten(1) if wrong.dim() > 1 else wrong[:, None]
        yield dim, rows, rows.any(1).nonzero()[:, 0].tolist()


def _every_nth(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    for dim, rows, indices in _touched(wrong):
        step = indices[1] - indices[0] if len(indices) > 2 else 0
        if step > 1 and indices == list(range(indices[0], len(rows), step)):
            return f"only at indices {', '.join(map(str, indices[:3]))}, ... of dimension {dim}"
    return ""


def _whole_slices(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """Find slices that are completely wrong in a dimension whose other slices are right."""
    if wrong.dim() < 2:
        return ""
    for dim, rows, indices in _touched(wrong):
        if bool((rows.all(1) == rows.any(1)).all()) and len(indices) < len(rows):
            listed = ", ".join(map(str, indices[:8])) + (", ..." if len(indices) > 8 else "")
            return f"all of indices {listed} of dimension {dim}"
    return ""


def _closeness(dtype: torch.dtype) -> float:
    """Return the relative difference below which two values count as equal."""
    return 4 * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def _near(a: torch.Tensor, b: torch.Tensor, close: float, share: float = _NEARLY_ALL) -> bool:
    """Return True if at least the given share of the elements is equal."""
    same = ((a - b).abs() <= close * b.abs()) | (a == b) | (a.isnan() & b.isnan())
    return int(same.sum()) >= max(share * same.numel(), 1)


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.4g}" if isinstance(item, float) else str(item)
