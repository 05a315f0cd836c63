"""Detect data races between the lanes of one program instance, and between the iterations of its loops.

The threads of a program instance are not synchronised. They wait only at tl.debug_barrier, at an atomic that is
scalar for the whole program instance, and at operations that take elements from other lanes (reductions, scans,
products, gathers). A lane is an element's position in the loaded or stored tensor, whatever its shape.

A loop over `tl.range(..., num_stages=n)` is pipelined: the compiler issues the loads of an iteration together with
those that come n - 1 iterations before, without a check that no store in between changes the memory.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

MAX_PENDING = 32  # accesses checked since the last synchronisation, for loads and for stores

Race: TypeAlias = tuple[int, str, bool]
"""An address, a description of the race there, and True if the lanes only store different values."""


@dataclass(frozen=True)
class _Access:
    """One load, store or atomic.

    Attributes:
        addresses: Address for each lane.
        mask: Active lanes, in the shape of `addresses`.
        values: Stored values; None for loads and atomics.
    """

    addresses: np.ndarray
    mask: np.ndarray
    values: np.ndarray | None = None

    @cached_property
    def cells(self) -> np.ndarray:
        """Addresses of the active lanes."""
        active: np.ndarray = self.addresses[self.mask]
        return active

    @cached_property
    def span(self) -> tuple[int, int]:
        return int(self.cells.min()), int(self.cells.max())

    @cached_property
    def lanes(self) -> np.ndarray:
        return np.flatnonzero(self.mask)

    @cached_property
    def bits(self) -> np.ndarray:
        assert self.values is not None
        stored: np.ndarray = np.broadcast_to(self.values, self.mask.shape)[self.mask]
        return stored.view(f"u{stored.itemsize}")

    @cached_property
    def order(self) -> np.ndarray:
        """Permutation that sorts the cells."""
        return np.argsort(self.cells, kind="stable")

    @cached_property
    def distinct(self) -> bool:
        """Return True if no two lanes access one cell; usually the cells ascend."""
        cells = self.cells
        if (cells[1:] > cells[:-1]).all():
            return True
        ascending = cells[self.order]
        return bool((ascending[1:] != ascending[:-1]).all())


@dataclass(eq=False)
class _Loop:
    """A loop that runs: how many iterations are in flight at once, and the stores in each of them."""

    stages: int
    stores: list[list[_Access]] = field(default_factory=list)


class Lanes:
    """Accesses of one program instance since the last synchronisation of its lanes.

    Each method returns the race that the new access causes, if any.
    """

    def __init__(self) -> None:
        self._loads: deque[_Access] = deque(maxlen=MAX_PENDING)
        self._stores: deque[_Access] = deque(maxlen=MAX_PENDING)
        self._loops: list[_Loop] = []  # those that run, the innermost last

    def loop(self, stages: int, values: Iterable[Any]) -> Iterator[Any]:
        """Yield the values of a loop's variable; the loop has this many stages."""
        if self._loops:
            self._loops[-1].stages = 1  # only an innermost loop is pipelined
        loop = _Loop(stages)
        self._loops.append(loop)
        try:
            for value in values:
                loop.stores = [*loop.stores, []][-stages:]
                yield value
        finally:
            self._loops.remove(loop)

    def wait(self) -> None:
        """Synchronise the lanes: all have arrived before any continues."""
        self._loads.clear()
        self._stores.clear()

    def load(self, addresses: np.ndarray, mask: np.ndarray) -> Race | None:
        access = _Access(addresses, mask)
        self._loads.append(access)
        races = (_foreign(store, access) for store in _near(self._stores, access))
        return _first(races) or self._too_early(access)

    def _too_early(self, load: _Access) -> Race | None:
        """Return a race if a pipelined loop loads what one of its last iterations stored."""
        loop = self._loops[-1] if self._loops else None
        if loop is None or loop.stages == 1:
            return None
        for store in itertools.chain.from_iterable(loop.stores[:-1]):
            met = np.isin(load.cells, store.cells)
            if met.any():
                text = f"a loop with num_stages={loop.stages} loads what an earlier iteration stored; the loads of"
                return int(load.cells[met][0]), f"{text} {loop.stages} iterations may come before that", False
        return None

    def store(self, addresses: np.ndarray, mask: np.ndarray, values: np.ndarray) -> Race | None:
        access = _Access(addresses, mask, values)
        race = _first((_ambiguous(access), *self._overtaken(access)))
        self._stores.append(access)
        if self._loops and self._loops[-1].stages > 1:
            self._loops[-1].stores[-1].append(access)
        return race

    def atomic(self, addresses: np.ndarray, mask: np.ndarray) -> Race | None:
        access = _Access(addresses, mask)
        if addresses.size == 1:
            self.wait()
            return None
        race = _first(self._overtaken(access))
        self._stores.append(access)
        return race

    def _overtaken(self, access: _Access) -> Iterable[Race | None]:
        """Yield races in which a lane stores to cells that other lanes load or store."""
        for load in _near(self._loads, access):
            yield _overwritten(load, access)
        for store in _near(self._stores, access):
            if store.values is not None or access.values is not None:
                yield _overwritten(store, access)


def _near(accesses: Iterable[_Access], access: _Access) -> Iterable[_Access]:
    """Yield accesses that may have a cell in common with `access` in different lanes."""
    low, high = access.span
    for other in accesses:
        apart = other.span[0] > high or other.span[1] < low
        if not apart and not (other.distinct and np.array_equal(other.addresses, access.addresses)):
            yield other


def _first(races: Iterable[Race | None]) -> Race | None:
    return next((race for race in races if race is not None), None)


def _ambiguous(store: _Access) -> Race | None:
    """Return a race if two lanes store different values to one cell."""
    if store.distinct:
        return None
    cells, bits = store.cells[store.order], store.bits[store.order]
    differ = (cells[1:] == cells[:-1]) & (bits[1:] != bits[:-1])
    return (int(cells[1:][differ][0]), "lanes store different values at once", True) if differ.any() else None


def _foreign(store: _Access, load: _Access) -> Race | None:
    """Return a race if a lane loads a value that only other lanes have stored."""
    count, same_lane, _ = _met(store, load)
    bad = (count > 0) & ~same_lane
    if not bad.any():
        return None
    return int(load.cells[bad][0]), "a lane loads what another one stored, without tl.debug_barrier between them", False


def _overwritten(earlier: _Access, later: _Access) -> Race | None:
    """Return a race if a lane stores to a cell that another lane loaded, or to which it stored another value.

    The lanes are not ordered, so the store may come first.
    """
    count, same_lane, example = _met(earlier, later)
    bad, stores = count > same_lane, earlier.values is not None and later.values is not None
    if earlier.values is not None and later.values is not None and earlier.values.itemsize == later.values.itemsize:
        bad &= earlier.bits[example] != later.bits
    if not bad.any():
        return None
    action = "loads" if earlier.values is None else "stores"
    return int(later.cells[bad][0]), f"a lane stores what another one {action} before, without tl.debug_barrier", stores


def _met(earlier: _Access, later: _Access) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compare each lane of the later access with the earlier access.

    Returns:
        How many lanes accessed the same cell, True if the lane itself is one of them, and an example's index.
    """
    cells = earlier.cells[earlier.order]
    left, right = (np.searchsorted(cells, later.cells, side) for side in ("left", "right"))
    both = np.concatenate([earlier.cells, later.cells])
    lanes = np.concatenate([earlier.lanes, later.lanes])
    # Encode (cell, lane) as one integer, so that one isin() shows which lanes meet their own access.
    pairs = (both - both.min()).astype(np.int64) * (int(lanes.max()) + 1) + lanes
    same_lane = np.isin(pairs[cells.size :], pairs[: cells.size])
    return right - left, same_lane, earlier.order[np.minimum(left, cells.size - 1)]
