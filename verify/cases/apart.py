"""Vary the sizes of a call's arguments independently.

These variants expose a kernel that reads a size from one argument and uses it for another. Most such calls are
invalid; ATen decides which are valid. Used by verify/cases/extended.py.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch

from verify.cases.arguments import LAST, Arguments
from verify.cases.kinds import Judged, kind_of
from verify.cases.oracle import idle
from verify.cases.places import Site, places, resized

MAX_TRIED = 1000  # calls that are tried with ATen, about 1 ms each
_ALL_SUBSETS = 4  # up to this many sites, try every subset; beyond that, subsets of 1, 2, all but 1 and all but 2


def apart(
    overload: str, arguments: Arguments, generator: torch.Generator, judged: Judged
) -> Iterator[tuple[str, Arguments]]:
    """Yield calls with new kinds that ATen answers, in random order.

    Every dimension that affects the original result has to affect the new result completely, and so does each
    tensor's last element. This check is needed because ATen also answers some calls with mismatched sizes, and
    ignores the excess elements.

    Args:
        overload: Full name of the ATen overload.
        arguments: The original call, by schema name.
        generator: Random generator for the order and for new tensor contents.
        judged: The kinds that exist already. The kind of each yielded call is added.

    Yields:
        A description of the change, and the changed arguments.
    """
    sizes = places(arguments)
    needed = needed_places(overload, arguments)
    changes = [
        (chosen, old, new)
        for old in sorted(set(sizes.values()))
        for chosen in sorted(_choices([site for site, size in sizes.items() if size == old]))
        for new in _other_sizes(old)
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
    """Return the tensor dimensions, and last elements, that affect the call's result."""
    tensor_sites = _of_tensors(arguments)
    idle_indices = idle(overload, arguments, tensor_sites)
    return [p for i, p in enumerate(tensor_sites) if i not in (idle_indices or ())]


def _of_tensors(arguments: Arguments) -> list[Site]:
    sizes = places(arguments)
    sites = [p for p in sizes if p.of_tensor(arguments) and sizes[p]]
    return sites + [p._replace(dim=LAST) for p in sites if p.dim == 1]


def matters_as_much(overload: str, changed: Arguments, arguments: Arguments) -> bool:
    """Return True if ATen answers the changed call and ignores no more of its tensor sites than before."""
    idle_indices = idle(overload, changed, _of_tensors(changed))
    return idle_indices is not None and len(idle_indices) <= len(
        idle(overload, arguments, _of_tensors(arguments)) or ()
    )


def _choices(of: Sequence[Site]) -> set[tuple[Site, ...]]:
    """Return sets of sites to change together.

    The sets contain few or nearly all of the sites, and the same again within each group of sites with equal
    `dim`.
    """
    by_dim: defaultdict[int, list[Site]] = defaultdict(list)
    for site in of:
        by_dim[site.dim].append(site)
    return set().union(*(_subsets(group) for group in (of, *by_dim.values())))


def _subsets(of: Sequence[Site]) -> set[tuple[Site, ...]]:
    n = len(of)
    counts = range(1, n + 1) if n <= _ALL_SUBSETS else (1, 2, n - 2, n - 1, n)
    return {chosen for count in counts for chosen in itertools.combinations(of, count)}


def _other_sizes(size: int) -> list[int]:
    """Return other sizes to try.

    These are half and double the size, so that one divides the other, the size plus one, and 1, which
    broadcasts.
    """
    if size < 2:
        return [2] * size
    return sorted({1, size // 2 if size % 2 == 0 else 1, size + 1, 2 * size})
