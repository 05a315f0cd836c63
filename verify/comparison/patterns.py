"""What the wrong elements of a result have in common, in words: what they hold, and where they are.

Each finder answers with a phrase or with nothing. `got` and `expected` have one shape of at least one dimension;
`wrong` marks the elements outside the tolerance and is true somewhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import torch

from verify.child.fresh import OTHER

MOST_MOVED = 1 << 20  # elements of a tensor that is searched for values in another place
FARTHEST = 3  # indices that values may have moved
CLOSE = 0.01  # largest error, as a share of the largest value, that may be a matter of precision
_ENOUGH = 4  # elements that a relation needs, so that it is none by chance
_NEARLY_ALL = 0.9

Finder = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], str]


def pattern(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """The first phrase that fits of each kind, of values and of places, with a comma between; or nothing."""
    values = (_unwritten, _nan, _infinite, _zero, _relation, _constant, _moved, _precision)
    kinds: tuple[tuple[Finder, ...], ...] = (values, (_ends, _one_index, _whole_slices, _every_nth))
    found = [next(filter(None, (find(got, expected, wrong) for find in finders)), "") for finders in kinds]
    return ", ".join(filter(None, found))


def _unwritten(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    held = got[wrong]
    if held.dtype is torch.bool:
        return ""
    other = torch.full((held.element_size(),), OTHER, dtype=torch.uint8).view(held.dtype)[0]
    filled = held.isnan() if held.is_floating_point() else held == torch.iinfo(held.dtype).max
    marked = held == other
    never = bool(marked.any()) and bool((marked | filled).all())
    return "never stored: they hold what fresh memory is filled with" if never else ""


def _nan(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    held, wanted = got[wrong], expected[wrong]
    if bool(held.isnan().all()) and not bool(wanted.isnan().any()):
        zero, infinite = bool((wanted == 0).all()), bool(wanted.isinf().all())
        return f"NaN where {'0' if zero else 'infinity' if infinite else 'a number'} is expected"
    if bool(wanted.isnan().all()) and not bool(held.isnan().any()):
        return f"{'0' if bool((held == 0).all()) else 'a number'} where NaN is expected"
    return ""


def _infinite(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    held, wanted = got[wrong].isinf(), expected[wrong].isinf()
    if bool(held.all()) and not bool(wanted.any()):
        return "infinity where a finite number is expected"
    return "a finite number where infinity is expected" if bool(wanted.all()) and not bool(held.any()) else ""


def _zero(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    return "0 where another value is expected" if bool((got[wrong] == 0).all()) else ""


def _constant(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    held = got[wrong]
    same = len(held) >= _ENOUGH and bool((held == held[0]).all())
    return f"all of them {_number(held[0])}" if same else ""


def _relation(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """A sign, a factor or a summand by which every wrong element differs."""
    held, wanted = got[wrong].to(torch.float64), expected[wrong].to(torch.float64)
    if len(held) < _ENOUGH or not bool((held.isfinite() & wanted.isfinite()).all()):
        return ""
    if len(torch.unique(wanted)) < 2:
        return ""
    close = _closeness(got.dtype)
    if _near(held, -wanted, close):
        return "the negative of what is expected"
    factor, summand = (held / wanted).median(), (held - wanted).median()
    telling = bool(factor.isfinite()) and abs(factor) > close and abs(factor - 1) > 2 * close
    if telling and _near(held, factor * wanted, close):
        return f"{_number(factor)} times what is expected"
    clear = abs(summand) > 4 * close * wanted.abs().max()
    if clear and bool(((held - wanted - summand).abs() <= close * (held.abs() + wanted.abs())).all()):
        return f"what is expected {'+' if summand > 0 else '-'} {_number(summand.abs())}"
    return ""


def _moved(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """Right values in a wrong place."""
    few = len(torch.unique(expected)) <= _ENOUGH
    if got.numel() > MOST_MOVED or few or int(wrong.sum()) * 2 < wrong.numel():
        return ""
    close = _closeness(got.dtype)
    got, expected = got.to(torch.float64), expected.to(torch.float64)
    for by in (1, -1, 2, -2):  # before the last dimension, along which most is shifted then as well
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


def _shifted(  # noqa: PLR0913 - two tensors, and what is asked of them
    got: torch.Tensor, expected: torch.Tensor, by: int, dim: int, close: float, share: float = _NEARLY_ALL
) -> bool:
    """Whether `got` holds at i what `expected` has at i + by, nearly everywhere."""
    left = got.shape[dim] - abs(by)
    if left < 1 or left * got.numel() // got.shape[dim] < _ENOUGH:
        return False
    held = got.narrow(dim, max(0, -by), left)
    return _near(held, expected.narrow(dim, max(0, by), left), close, share)


def _precision(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    if not got.is_floating_point():
        return ""
    held, wanted = got[wrong].to(torch.float64), expected[wrong].to(torch.float64)
    largest = expected.to(torch.float64).abs().nan_to_num(0.0, posinf=0.0).max()
    error = (held - wanted).abs().max()
    if not bool(error <= CLOSE * largest):
        return ""
    return f"off by at most {_number(error / largest)} of the largest value, which may be a matter of precision"


def _ends(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """From some index on, or up to one: of the flat tensor, else of a dimension."""
    flat = wrong.flatten()
    first, last, size = int(flat.nonzero()[0]), int(flat.nonzero()[-1]), flat.numel()
    if any(bool(wrong.select(dim, index).all()) for dim, index in _confined(wrong)):
        return ""  # one whole slice is better named as such
    if first and _fills(flat[first:], first):
        return f"from flat index {first} on"
    if last < size - 1 and _fills(flat[: last + 1], size - 1 - last):
        return f"up to flat index {last}"
    for dim in range(wrong.dim() if wrong.dim() > 1 else 0):
        rows = wrong.movedim(dim, 0).flatten(1)
        which = rows.any(1).nonzero()[:, 0]
        low, high = int(which[0]), int(which[-1])
        if low and high == len(rows) - 1 and high > low and _fills(rows[low:], low):
            return f"from index {low} of dimension {dim} on"
    return ""


def _fills(part: torch.Tensor, right: int) -> bool:
    """Whether all of a part is wrong; or nearly all, where `right` others are right: too many for chance."""
    return bool(part.all()) or (right >= 32 and int(part.sum()) >= _NEARLY_ALL * part.numel())


def _confined(wrong: torch.Tensor) -> list[tuple[int, int]]:
    """Dimensions of which one index alone is wrong, with that index."""
    places = wrong.nonzero()
    return [
        (d, int(places[0, d]))
        for d in range(wrong.dim())
        if wrong.shape[d] > 1 and bool((places[:, d] == places[0, d]).all())
    ]


def _one_index(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    for dim, index in _confined(wrong):
        last = " (the last)" if index == wrong.shape[dim] - 1 else ""
        return f"only at index {index} of dimension {dim}{last}"
    return ""


def _touched(wrong: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, list[int]]]:
    """Each dimension with its slices, flat, and the indices of those that hold a wrong element."""
    for dim in range(wrong.dim()):
        rows = wrong.movedim(dim, 0).flatten(1) if wrong.dim() > 1 else wrong[:, None]
        yield dim, rows, rows.any(1).nonzero()[:, 0].tolist()


def _every_nth(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    for dim, rows, which in _touched(wrong):
        step = which[1] - which[0] if len(which) > 2 else 0
        if step > 1 and which == list(range(which[0], len(rows), step)):
            return f"only at indices {', '.join(map(str, which[:3]))}, ... of dimension {dim}"
    return ""


def _whole_slices(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    """Where the wrong elements fill whole slices of a dimension, which of its indices are wrong."""
    if wrong.dim() < 2:
        return ""
    for dim, rows, which in _touched(wrong):
        if bool((rows.all(1) == rows.any(1)).all()) and len(which) < len(rows):
            listed = ", ".join(map(str, which[:8])) + (", ..." if len(which) > 8 else "")
            return f"all of indices {listed} of dimension {dim}"
    return ""


def _closeness(dtype: torch.dtype) -> float:
    """Relative difference within which two values are taken for the same."""
    return 4 * torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def _near(a: torch.Tensor, b: torch.Tensor, close: float, share: float = _NEARLY_ALL) -> bool:
    """Whether that share of the elements is the same."""
    same = ((a - b).abs() <= close * b.abs()) | (a == b) | (a.isnan() & b.isnan())
    return int(same.sum()) >= max(share * same.numel(), 1)


def _number(value: torch.Tensor) -> str:
    item = value.item()
    return f"{item:.4g}" if isinstance(item, float) else str(item)
