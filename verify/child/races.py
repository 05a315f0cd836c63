"""Find program instances in one launch that depend on each other's order without atomics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from verify.child.accesses import Region

MAX_PAIRS = 100  # conflicting pairs of program instances to examine for each storage

# Scopes of atomics that hold between program instances, and the orders that publish and that acquire, as Triton names
# them.
WIDE_SCOPES = frozenset({"gpu", "system"})
_RELEASING, _ACQUIRING = (frozenset({order, "acquire_release"}) for order in ("release", "acquire"))


@dataclass
class Atomics:
    """Times at which a program instance used atomics on one element, in ascending order.

    An atomic orders memory only by its `sem` (PTX ISA, memory consistency model): a releasing one publishes the
    accesses before it, an acquiring one sees those that were published, and a relaxed one does neither. With scope
    `cta` it orders nothing between program instances.
    """

    releases: list[int] = field(default_factory=list)
    acquires: list[int] = field(default_factory=list)

    def add(self, time: int, sem: str, scope: str) -> None:
        """Record an atomic with this memory order and scope."""
        if scope in WIDE_SCOPES:
            self.releases += [time] if sem in _RELEASING else []
            self.acquires += [time] if sem in _ACQUIRING else []


Meetings: TypeAlias = dict[int, dict[int, Atomics]]
"""By program instance and address: its atomics on one element there."""


@dataclass(frozen=True)
class Access:
    """Load, store or atomic by one program instance at one line.

    It is a store if it has `values`.

    Attributes:
        region: Region that is accessed.
        program: Program instance index.
        time: How many accesses the launch has made so far.
        line: Kernel file line.
        addresses: uint64, [lanes].
        values: Values to store.
        atomic: True for an atomic.
        narrow: True for an atomic whose scope is one program instance.
    """

    region: Region
    program: int
    time: int
    line: int
    addresses: np.ndarray
    values: np.ndarray | None
    atomic: bool = False
    narrow: bool = False


@dataclass(frozen=True)
class Race:
    """Conflict between `access` and the program instance `other` at the real `address`.

    `stores` is True if both store there, and their values differ. `narrow` is True if both use atomics, and the scope
    of one is a single program instance.
    """

    access: Access
    other: int
    address: int
    stores: bool
    narrow: bool = False


@dataclass(frozen=True)
class _Lanes:
    """Flattened accesses, with one entry for each cell.

    Attributes:
        cell: Address divided by the cell size.
        program: Program instance index.
        access: Access index.
        bits: Stored bits, if any.
    """

    cell: np.ndarray
    program: np.ndarray
    access: np.ndarray
    bits: np.ndarray


def races(log: Sequence[Access], meetings: Meetings) -> Iterator[Race]:
    """Yield the conflicts in `log`, with one example for each pair of an access and a program instance.

    Two program instances conflict at a cell in these cases:

    - Both store there, and their last values differ.
    - One accesses a cell that only the other stores.
    - One loads a cell that only the other changes by atomics.
    - Both use atomics on it, and the scope of one is a single program instance.

    Atomics on one element establish an order, as in a lock or in a counter of finished program instances. The
    order holds if the earlier program instance used a releasing atomic after its access, and then the later one used
    an acquiring atomic on the same address before its own access.

    Args:
        log: Accesses of a launch.
        meetings: Times of atomics by program instance and address.
    """
    by_storage: dict[int, list[Access]] = {}
    for access in log:
        by_storage.setdefault(access.region.storage, []).append(access)
    for accesses in by_storage.values():
        yield from _of_storage(accesses, meetings)


def _of_storage(accesses: list[Access], meetings: Meetings) -> Iterator[Race]:
    stores = [a for a in accesses if a.values is not None]
    loads = [a for a in accesses if a.values is None and not a.atomic]
    atomics = [a for a in accesses if a.atomic]
    # Loads have no recorded size, so only the byte at their address is compared. It is in the cell if the sizes
    # agree.
    sizes = {a.values.itemsize for a in stores if a.values is not None}
    size = sizes.pop() if len(sizes) == 1 else 1
    for readers, writers in ((stores, stores), (loads, stores), (atomics, stores), (loads, atomics)):
        if readers and writers:
            yield from _between(readers, writers, size, meetings)
    if any(access.narrow for access in atomics):
        yield from _too_narrow(atomics, meetings)


def _too_narrow(atomics: list[Access], meetings: Meetings) -> Iterator[Race]:
    """Yield races between atomics of two program instances, if the scope of one is a single program instance."""
    lanes = _lanes(atomics, 1)
    order = np.lexsort((lanes.program, lanes.cell))
    cell, program, access = lanes.cell[order], lanes.program[order], lanes.access[order]
    pairs = np.flatnonzero((cell[1:] == cell[:-1]) & (program[1:] != program[:-1]))
    for at in pairs[:MAX_PAIRS].tolist():
        first, second = atomics[access[at]], atomics[access[at + 1]]
        if (first.narrow or second.narrow) and not _ordered(first, second, meetings):
            yield Race(second, first.program, int(cell[at]), stores=False, narrow=True)


def _between(readers: list[Access], writers: list[Access], size: int, meetings: Meetings) -> Iterator[Race]:
    """Yield races between accesses and stores; if both lists are the same, between stores."""
    written, both = _lanes(writers, size), readers is writers
    base, end = int(written.cell.min()), int(written.cell.max()) + 1
    owner = np.full(end - base, -1, dtype=np.int32)
    owner[written.cell - base] = written.program
    conflicts = _differing(written, owner, base) if both else _seen(_lanes(readers, size), written, owner, base)
    for index, other, cell in islice(conflicts, MAX_PAIRS):
        access = readers[index]
        last = written.access[(written.cell == cell) & (written.program == other)][-1]
        if not _ordered(access, writers[last], meetings):
            yield Race(access, other, cell * size, both)


def _ordered(one: Access, other: Access, meetings: Meetings) -> bool:
    earlier, later = sorted((one, other), key=lambda access: access.time)
    after, before = meetings.get(earlier.program, {}), meetings.get(later.program, {})
    cells = after.keys() & before.keys()
    return any(_handed_over(after[cell].releases, earlier.time, before[cell].acquires, later.time) for cell in cells)


def _handed_over(releases: list[int], since: int, acquires: list[int], until: int) -> bool:
    """Return True if the first release from `since` on precedes the last acquire before `until`; times ascend."""
    first, last = bisect_left(releases, since), bisect_left(acquires, until) - 1
    return first < len(releases) and last >= 0 and releases[first] < acquires[last]


def _lanes(accesses: list[Access], size: int) -> _Lanes:
    """Split accesses into cells with `size` bytes; a store that spans several cells has an entry for each."""
    cells, bits, widths = [], [], []
    for access in accesses:
        real = (access.addresses - access.region.offset).astype(np.int64)
        values = access.values
        width = 1 if values is None else values.itemsize // size
        cells.append((real[:, None] // size + np.arange(width)).reshape(-1))
        bits.append(np.zeros(0, np.uint64) if values is None else _bits(values, size))
        widths.append(cells[-1].size)
    indices = np.repeat(np.arange(len(accesses)), widths)
    programs = np.array([a.program for a in accesses], dtype=np.int32)
    return _Lanes(np.concatenate(cells), programs[indices], indices, np.concatenate(bits))


def _bits(values: np.ndarray, size: int) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(-1).view(f"u{size}").astype(np.uint64)


def _differing(stored: _Lanes, owner: np.ndarray, base: int) -> Iterator[tuple[int, int, int]]:
    """Yield (access, other program instance, cell) if the last values of two program instances differ."""
    clash = owner[stored.cell - base] != stored.program
    if not clash.any():
        return
    shared = np.zeros(owner.shape, dtype=bool)
    shared[stored.cell[clash] - base] = True
    lanes = np.flatnonzero(shared[stored.cell - base])
    # Sort by cell, then program instance, then time: the last entry of each group is the final store.
    order = lanes[np.lexsort((lanes, stored.program[lanes], stored.cell[lanes]))]
    cell, program = stored.cell[order], stored.program[order]
    # last store of each program instance to a cell
    final = np.append((cell[1:] != cell[:-1]) | (program[1:] != program[:-1]), True)
    order, cell = order[final], cell[final]
    bits, program = stored.bits[order], stored.program[order]
    differ = np.flatnonzero((cell[1:] == cell[:-1]) & (bits[1:] != bits[:-1]))
    yield from _examples(stored.access[order][differ + 1], program[differ], cell[differ])


def _seen(loads: _Lanes, stored: _Lanes, owner: np.ndarray, base: int) -> Iterator[tuple[int, int, int]]:
    """Yield (access, other program instance, cell) if an instance accesses a cell that only others change."""
    offsets = loads.cell - base
    lanes = np.flatnonzero((offsets >= 0) & (offsets < owner.size))
    writer = owner[offsets[lanes]]
    lanes = lanes[(writer >= 0) & (writer != loads.program[lanes])]
    if not lanes.size:
        return
    programs = int(max(stored.program.max(), loads.program.max())) + 1
    # Encode (cell, program instance) as one integer, so that one isin() finds an instance's own stores.
    written_by_itself = np.isin(
        offsets[lanes] * programs + loads.program[lanes], (stored.cell - base) * programs + stored.program
    )
    lanes = lanes[~written_by_itself]
    yield from _examples(loads.access[lanes], owner[offsets[lanes]], loads.cell[lanes])


def _examples(access: np.ndarray, other: np.ndarray, cell: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield the first cell for each pair of an access and a program instance."""
    cells: dict[tuple[int, int], int] = {}
    for a, o, c in zip(access[: 1 << 16].tolist(), other.tolist(), cell.tolist(), strict=False):
        cells.setdefault((a, o), c)
    for (a, o), c in cells.items():
        yield a, o, c
