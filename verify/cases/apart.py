"""Sizes of a call's arguments varied apart from each other, so that a kernel that takes a size from one argument and
uses it for another is found out. Most of these calls make no sense; ATen says which do."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch

from verify.cases.arguments import LAST, Arguments
from verify.cases.kinds import Judged, kind_of
from verify.cases.oracle import idle
from verify.cases.places import Site, places, resized

MAX_TRIED = 1000  # calls that ATen is asked about, a millisecond each
_ALL_SUBSETS = 4  # places of which every choice is tried; of more, one, two, all but one and all but two


def apart(
    overload: str, arguments: Arguments, generator: torch.Generator, judged: Judged
) -> Iterator[tuple[str, Arguments]]:
    """Calls of new kinds that ATen answers, in an order that is drawn. judged: the kinds there are; these are added.

    Every dimension that matters to the given call has to matter in full, and so has the last element of each tensor:
    ATen also answers some calls with sizes that do not fit, and leaves out what is too much.
    """
    sizes = places(arguments)
    needed = needed_places(overload, arguments)
    changes = [
        (chosen, old, new)
        for old in sorted(set(sizes.values()))
        for chosen in sorted(_choices([place for place, size in sizes.items() if size == old]))
        for new in _others(old)
    ]
    tried = 0
    for i in torch.randperm(len(changes), generator=generator).tolist():
        chosen, old, new = changes[i]
        changed = resized(arguments, chosen, new, generator)
        if tried >= MAX_TRIED or not judged.news(kind_of(changed)):
            continue
        tried += 1
        if idle(overload, changed, needed) == []:
            judged.add(kind_of(changed))
            yield f"{' and '.join(map(str, chosen))}: {old} -> {new}", changed


def needed_places(overload: str, arguments: Arguments) -> list[Site]:
    """Dimensions, and last elements, of tensors that matter to the call."""
    of_tensors = _of_tensors(arguments)
    without = idle(overload, arguments, of_tensors)
    return [p for i, p in enumerate(of_tensors) if i not in (without or ())]


def _of_tensors(arguments: Arguments) -> list[Site]:
    sizes = places(arguments)
    of_tensors = [p for p in sizes if p.of_tensor(arguments) and sizes[p]]
    return of_tensors + [p._replace(dim=LAST) for p in of_tensors if p.dim == 1]


def matters_as_much(overload: str, changed: Arguments, arguments: Arguments) -> bool:
    """Whether ATen answers the changed call, and leaves out no more of its tensors than of those of the given one."""
    without = idle(overload, changed, _of_tensors(changed))
    return without is not None and len(without) <= len(idle(overload, arguments, _of_tensors(arguments)) or ())


def _choices(of: Sequence[Site]) -> set[tuple[Site, ...]]:
    """Sets of places that change together: few of all, and more of those that are the same dimension of a tensor."""
    by_dim: defaultdict[int, list[Site]] = defaultdict(list)
    for place in of:
        by_dim[place.dim].append(place)
    return set().union(*(_subsets(group) for group in (of, *by_dim.values())))


def _subsets(of: Sequence[Site]) -> set[tuple[Site, ...]]:
    n = len(of)
    counts = range(1, n + 1) if n <= _ALL_SUBSETS else (1, 2, n - 2, n - 1, n)
    return {chosen for count in counts for chosen in itertools.combinations(of, count)}


def _others(size: int) -> list[int]:
    """Other sizes: a half and double, of which one divides the other; one more; and 1, which is broadcast."""
    if size < 2:
        return [2] * size
    return sorted({1, size // 2 if size % 2 == 0 else 1, size + 1, 2 * size})
