"""Producers: calls whose outputs a backward operator consumes.

A backward operator takes results of its forward operator, such as the softmax, the reciprocal standard deviation or the
offsets of a pooling. Independently drawn values would be invalid. If their contents are not stored, the trace names
the stored call that reproduces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from traces.facts import tagged
from traces.live import unsupported_kind

PRODUCERS = tagged("producers")
DERIVED = tagged("derived")

MAX_ORIGINS = 1 << 12  # number of storages beyond which dead ones are dropped

Path: TypeAlias = list[int]


@dataclass(frozen=True, slots=True)
class _Origin:
    storage: StorageWeakRef
    sample: list[int]  # ids of stored calls with the producer's signature; the first one is run again
    path: Path
    layout: tuple[Any, ...]
    inputs: dict[tuple[Any, ...], tuple[str, Path]]  # argument name and path, by storage and layout


class Producers:
    """Remembers the origin of storages that PRODUCERS returned. Keeps no tensor and no bytes alive."""

    def __init__(self) -> None:
        self._origins: dict[int, _Origin] = {}

    def produced(self, result: Any, inputs: dict[tuple[Any, ...], tuple[str, Path]], sample: list[int]) -> None:
        """Record a producer call.

        Args:
            result: Its result.
            inputs: `keys` of its arguments before the call.
            sample: Ids of stored calls with its signature; the list may still grow.
        """
        if len(self._origins) > MAX_ORIGINS:
            self._origins = {k: o for k, o in self._origins.items() if not o.storage.expired()}  # type: ignore[no-untyped-call]
        for path, t in _flat(result):
            if _is_plain(t):
                storage = t.untyped_storage()
                self._origins[storage._cdata] = _Origin(
                    StorageWeakRef(storage),  # type: ignore[no-untyped-call]
                    sample,
                    path,
                    _layout(t),
                    inputs,
                )

    def forget(self, t: torch.Tensor) -> None:
        """Forget the origin of a tensor that is about to be written."""
        if self._origins and _is_plain(t):
            self._origins.pop(t.untyped_storage()._cdata, None)

    def sources(self, arguments: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """Return content specs, by storage, for the arguments of a backward call that a stored call can reproduce."""
        tensors = [t for value in arguments.values() for _, t in _flat(value) if _is_plain(t)]
        specs: dict[int, dict[str, Any]] = {}
        origins: list[_Origin] = []
        for t in tensors:
            origin = self._origins.get(t.untyped_storage()._cdata)
            if origin is None or origin.storage.expired():  # type: ignore[no-untyped-call]
                continue
            if not origin.sample or origin.layout != _layout(t):
                continue
            source = {"call": origin.sample[0], "output": origin.path}
            specs[t.untyped_storage()._cdata] = {"level": "seeded", "from": source}
            origins.append(origin)
        for t in tensors:
            cdata = t.untyped_storage()._cdata
            for origin in origins:
                argument = origin.inputs.get((cdata, *_layout(t)))
                if argument is not None:  # an input of the producer that made another argument, whatever its own origin
                    source = {"call": origin.sample[0], "argument": argument[0], "path": argument[1]}
                    specs[cdata] = {"level": "seeded", "from": source}
        return specs


def keys(arguments: dict[str, Any]) -> dict[tuple[Any, ...], tuple[str, Path]]:
    """Return name and path for each tensor argument, by its storage and layout."""
    return {
        (t.untyped_storage()._cdata, *_layout(t)): (name, path)
        for name, value in arguments.items()
        for path, t in _flat(value)
        if _is_plain(t)
    }


def _is_plain(t: torch.Tensor) -> bool:
    """Return True if storage and layout determine the elements, which excludes lazily conjugated or negated views."""
    return unsupported_kind(t) is None and not t.is_conj() and not t.is_neg()


def _layout(t: torch.Tensor) -> tuple[Any, ...]:
    return (t.storage_offset(), tuple(t.shape), t.dtype)


def _flat(value: Any) -> Iterator[tuple[Path, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield [], value
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            for path, t in _flat(item):
                yield [i, *path], t
