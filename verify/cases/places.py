"""Sites that hold the sizes in a call: tensor dimensions, and entries in lists of sizes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from verify.cases.arguments import Arguments
from verify.cases.variants import like

_ITEMS = 2  # number of tensors in a list that are considered


class Site(NamedTuple):
    """One site that holds a size.

    Attributes:
        name: Argument name.
        item: Index in a list of tensors, else None.
        dim: Tensor dimension, or index in a list of sizes. In requests to ATen (verify/cases/trial.py) it may
            be LAST.
    """

    name: str
    item: int | None
    dim: int

    def of_tensor(self, arguments: Arguments) -> bool:
        """Return True if the site is a tensor dimension, not an entry in a list of sizes."""
        return self.item is not None or isinstance(arguments[self.name], torch.Tensor)

    def size(self, arguments: Arguments) -> int:
        """Return the size at this site."""
        value = arguments[self.name] if self.item is None else arguments[self.name][self.item]
        return int(value.shape[self.dim] if isinstance(value, torch.Tensor) else value[self.dim])

    def __str__(self) -> str:
        return f"{self.name}{'' if self.item is None else f'[{self.item}]'}.{self.dim}"


def places(arguments: Arguments) -> dict[Site, int]:
    """Return all sites in a call with their sizes."""
    return dict(_places(arguments))


def _places(arguments: Arguments) -> Iterator[tuple[Site, int]]:
    for name, value in arguments.items():
        if isinstance(value, list | tuple):
            for i, item in enumerate(value):
                if isinstance(item, torch.Tensor) and i < _ITEMS:
                    yield from ((Site(name, i, d), n) for d, n in enumerate(_shape(item)))
                elif type(item) is int and ("shape" in name or "size" in name):
                    yield Site(name, None, i), item
        elif isinstance(value, torch.Tensor):
            yield from ((Site(name, None, d), n) for d, n in enumerate(_shape(value)))


def _shape(t: torch.Tensor) -> Sequence[int]:
    return () if t.is_sparse else t.shape


def choices(of: Sequence[Site], most: int) -> Iterator[tuple[Site, ...]]:
    """Yield sets with up to `most` sites, small sets first."""
    for count in range(1, min(most, len(of)) + 1):
        yield from itertools.combinations(of, count)


def resized(arguments: Arguments, at: Collection[Site], new: int, generator: torch.Generator) -> Arguments:
    """Return the call with size `new` at these sites."""

    def tensor(value: torch.Tensor, name: str, item: int | None) -> torch.Tensor:
        dims = {p.dim for p in at if (p.name, p.item) == (name, item)}
        return like(value, [new if d in dims else n for d, n in enumerate(value.shape)], generator) if dims else value

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return tensor(value, name, None)
        if not isinstance(value, list | tuple):
            return value
        return type(value)(
            tensor(v, name, i) if isinstance(v, torch.Tensor) else new if Site(name, None, i) in at else v
            for i, v in enumerate(value)
        )

    return {name: changed(name, value) for name, value in arguments.items()}
