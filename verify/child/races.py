"""Which programs of one launch depend on each other's order without atomics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from verify.child.accesses import Region

MAX_PAIRS = 100  # conflicting pairs of programs that are looked at, of one storage

Meetings: TypeAlias = dict[int, dict[int, list[int]]]
"""By program and address: when the program met others there, by an atomic on one element."""


@dataclass(frozen=True)
class Access:
    """Loads, or stores where there are `values`, of one program at one line; or atomics. addresses: uint64 [lanes].

    time: accesses of the launch so far.
    """

    region: Region
    program: int
    time: int
    line: int
    addresses: np.ndarray
    values: np.ndarray | None
    atomic: bool = False


@dataclass(frozen=True)
class Race:
    """`access` and program `other` meet at the real `address`. stores: both stored there, and not the same value."""

    access: Access
    other: int
    address: int
    stores: bool


@dataclass(frozen=True)
class _Lanes:
    """Accesses side by side, one entry a cell: which cell, which program, which access, what bits if any."""

    cell: np.ndarray
    program: np.ndarray
    access: np.ndarray
    bits: np.ndarray


def races(log: Sequence[Access], met: Meetings) -> Iterator[Race]:
    """Conflicts in `log`, an example for each pair of an access and a program.

    Two programs conflict at a cell if both store there and their last values differ, or if one accesses what only the
    other stores, or loads what only the other changes by atomics. Atomics on one element order them, as a lock does, or
    a counter of the programs that are done: where the earlier one used an atomic after its access, and then the later
    one used an atomic of the same address before its own.
    """
    by_storage: dict[int, list[Access]] = {}
    for access in log:
        by_storage.setdefault(access.region.storage, []).append(access)
    for accesses in by_storage.values():
        yield from _of_storage(accesses, met)


def _of_storage(accesses: list[Access], met: Meetings) -> Iterator[Race]:
    stores = [a for a in accesses if a.values is not None]
    loads = [a for a in accesses if a.values is None and not a.atomic]
    atomics = [a for a in accesses if a.atomic]
    # Loads do not carry their size: the byte at their address is in question, which is in the cell if sizes agree.
    sizes = {a.values.itemsize for a in stores if a.values is not None}
    size = sizes.pop() if len(sizes) == 1 else 1
    for readers, writers in ((stores, stores), (loads, stores), (atomics, stores), (loads, atomics)):
        if readers and writers:
            yield from _between(readers, writers, size, met)


def _between(readers: list[Access], writers: list[Access], size: int, met: Meetings) -> Iterator[Race]:
    """Races of accesses with those that change memory; of stores with each other where these are the same."""
    written, both = _lanes(writers, size), readers is writers
    base, end = int(written.cell.min()), int(written.cell.max()) + 1
    owner = np.full(end - base, -1, dtype=np.int32)
    owner[written.cell - base] = written.program
    found = _differing(written, owner, base) if both else _seen(_lanes(readers, size), written, owner, base)
    for index, other, cell in islice(found, MAX_PAIRS):
        access = readers[index]
        last = written.access[(written.cell == cell) & (written.program == other)][-1]
        if not _ordered(access, writers[last], met):
            yield Race(access, other, cell * size, both)


def _ordered(one: Access, other: Access, met: Meetings) -> bool:
    earlier, later = sorted((one, other), key=lambda access: access.time)
    after, before = met.get(earlier.program, {}), met.get(later.program, {})
    cells = after.keys() & before.keys()
    return any(_handed_over(after[cell], earlier.time, before[cell], later.time) for cell in cells)


def _handed_over(given: list[int], since: int, taken: list[int], until: int) -> bool:
    """Whether the first of the ascending times `given` from `since` on precedes the last of `taken` before `until`."""
    first, last = bisect_left(given, since), bisect_left(taken, until) - 1
    return first < len(given) and last >= 0 and given[first] < taken[last]


def _lanes(accesses: list[Access], size: int) -> _Lanes:
    """In cells of `size` bytes; a store of several cells has an entry for each."""
    cells, bits, widths = [], [], []
    for access in accesses:
        real = (access.addresses - access.region.offset).astype(np.int64)
        values = access.values
        width = 1 if values is None else values.itemsize // size
        cells.append((real[:, None] // size + np.arange(width)).reshape(-1))
        bits.append(np.zeros(0, np.uint64) if values is None else _bits(values, size))
        widths.append(cells[-1].size)
    of = np.repeat(np.arange(len(accesses)), widths)
    programs = np.array([a.program for a in accesses], dtype=np.int32)
    return _Lanes(np.concatenate(cells), programs[of], of, np.concatenate(bits))


def _bits(values: np.ndarray, size: int) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(-1).view(f"u{size}").astype(np.uint64)


def _differing(stored: _Lanes, owner: np.ndarray, base: int) -> Iterator[tuple[int, int, int]]:
    """(access, other program, cell) where two programs' last values differ."""
    clash = owner[stored.cell - base] != stored.program
    if not clash.any():
        return
    shared = np.zeros(owner.shape, dtype=bool)
    shared[stored.cell[clash] - base] = True
    lanes = np.flatnonzero(shared[stored.cell - base])
    order = lanes[np.lexsort((lanes, stored.program[lanes], stored.cell[lanes]))]
    cell, program = stored.cell[order], stored.program[order]
    final = np.append((cell[1:] != cell[:-1]) | (program[1:] != program[:-1]), True)  # a program's last store
    order, cell = order[final], cell[final]
    bits, program = stored.bits[order], stored.program[order]
    differ = np.flatnonzero((cell[1:] == cell[:-1]) & (bits[1:] != bits[:-1]))
    yield from _examples(stored.access[order][differ + 1], program[differ], cell[differ])


def _seen(loads: _Lanes, stored: _Lanes, owner: np.ndarray, base: int) -> Iterator[tuple[int, int, int]]:
    """(access, other program, cell) where a program accesses what another changes and it does not."""
    place = loads.cell - base
    lanes = np.flatnonzero((place >= 0) & (place < owner.size))
    writer = owner[place[lanes]]
    lanes = lanes[(writer >= 0) & (writer != loads.program[lanes])]
    if not lanes.size:
        return
    programs = int(max(stored.program.max(), loads.program.max())) + 1
    own = np.isin(place[lanes] * programs + loads.program[lanes], (stored.cell - base) * programs + stored.program)
    lanes = lanes[~own]
    yield from _examples(loads.access[lanes], owner[place[lanes]], loads.cell[lanes])


def _examples(access: np.ndarray, other: np.ndarray, cell: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """The first cell of each pair of an access and a program."""
    seen: dict[tuple[int, int], int] = {}
    for a, o, c in zip(access[: 1 << 16].tolist(), other.tolist(), cell.tolist(), strict=False):
        seen.setdefault((a, o), c)
    for (a, o), c in seen.items():
        yield a, o, c
