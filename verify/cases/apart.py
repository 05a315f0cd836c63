"""Sizes of a call's arguments varied apart from each other, so that a kernel that takes a size from one argument and
uses it for another is found out. Most of these calls make no sense; ATen says which do."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from verify.cases.arguments import LAST, Arguments
from verify.cases.kinds import Judged, kind_of
from verify.cases.oracle import idle
from verify.cases.variants import like

MAX_TRIED = 1000  # calls that ATen is asked about, a millisecond each
_ALL_SUBSETS = 4  # places of which every choice is tried; of more, one, two, all but one and all but two
_ITEMS = 2  # tensors of a list that are looked at


class _Place(NamedTuple):
    """Where a size stands. item: of a list of tensors, else None. dim: of the tensor or, for what ATen is asked about a
    tensor (verify/cases/trial.py), LAST; or index in a list of sizes."""

    name: str
    item: int | None
    dim: int

    def of_tensor(self, arguments: Arguments) -> bool:
        """Whether it is a size of a tensor, and not in a list of sizes."""
        return self.item is not None or isinstance(arguments[self.name], torch.Tensor)

    def __str__(self) -> str:
        return f"{self.name}{'' if self.item is None else f'[{self.item}]'}.{self.dim}"


def apart(
    overload: str, arguments: Arguments, generator: torch.Generator, judged: Judged
) -> Iterator[tuple[str, Arguments]]:
    """Calls of new kinds that ATen answers, in an order that is drawn. judged: the kinds there are; these are added.

    Every dimension that matters to the given call has to matter in full, and so has the last element of each tensor:
    ATen also answers some calls with sizes that do not fit, and leaves out what is too much.
    """
    sizes = dict(_places(arguments))
    of_tensors = [p for p in sizes if p.of_tensor(arguments) and sizes[p]]
    of_tensors += [p._replace(dim=LAST) for p in of_tensors if p.dim == 1]
    without = idle(overload, arguments, of_tensors)
    needed = [p for i, p in enumerate(of_tensors) if i not in (without or ())]
    changes = [
        (places, old, new)
        for old in sorted(set(sizes.values()))
        for places in sorted(_choices([place for place, size in sizes.items() if size == old]))
        for new in _others(old)
    ]
    tried = 0
    for i in torch.randperm(len(changes), generator=generator).tolist():
        places, old, new = changes[i]
        changed = _resized(arguments, places, new, generator)
        if tried >= MAX_TRIED or not judged.news(kind_of(changed)):
            continue
        tried += 1
        if idle(overload, changed, needed) == []:
            judged.add(kind_of(changed))
            yield f"{' and '.join(map(str, places))}: {old} -> {new}", changed


def _places(arguments: Arguments) -> Iterator[tuple[_Place, int]]:
    for name, value in arguments.items():
        if isinstance(value, list | tuple):
            for i, item in enumerate(value):
                if isinstance(item, torch.Tensor) and i < _ITEMS:
                    yield from ((_Place(name, i, d), n) for d, n in enumerate(_shape(item)))
                elif type(item) is int and ("shape" in name or "size" in name):
                    yield _Place(name, None, i), item
        elif isinstance(value, torch.Tensor):
            yield from ((_Place(name, None, d), n) for d, n in enumerate(_shape(value)))


def _shape(t: torch.Tensor) -> Sequence[int]:
    return () if t.is_sparse else t.shape


def _choices(places: Sequence[_Place]) -> set[tuple[_Place, ...]]:
    """Sets of places that change together: few of all, and more of those that are the same dimension of a tensor."""
    by_dim: defaultdict[int, list[_Place]] = defaultdict(list)
    for place in places:
        by_dim[place.dim].append(place)
    return set().union(*(_subsets(group) for group in (places, *by_dim.values())))


def _subsets(places: Sequence[_Place]) -> set[tuple[_Place, ...]]:
    n = len(places)
    counts = range(1, n + 1) if n <= _ALL_SUBSETS else (1, 2, n - 2, n - 1, n)
    return {chosen for count in counts for chosen in itertools.combinations(places, count)}


def _others(size: int) -> list[int]:
    """Other sizes: a half and double, of which one divides the other; one more; and 1, which is broadcast."""
    if size < 2:
        return [2] * size
    return sorted({1, size // 2 if size % 2 == 0 else 1, size + 1, 2 * size})


def _resized(arguments: Arguments, places: Collection[_Place], new: int, generator: torch.Generator) -> Arguments:
    """The call with this size at these places."""

    def tensor(value: torch.Tensor, name: str, item: int | None) -> torch.Tensor:
        dims = {p.dim for p in places if (p.name, p.item) == (name, item)}
        return like(value, [new if d in dims else n for d, n in enumerate(value.shape)], generator) if dims else value

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return tensor(value, name, None)
        if not isinstance(value, list | tuple):
            return value
        return type(value)(
            tensor(v, name, i) if isinstance(v, torch.Tensor) else new if _Place(name, None, i) in places else v
            for i, v in enumerate(value)
        )

    return {name: changed(name, value) for name, value in arguments.items()}
