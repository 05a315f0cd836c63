"""Check every access in an interpreted launch: bounds, alignment and data races.

The kernel never gets a real address. Each tensor argument has its own virtual region of at least 2^36 bytes, so an
address identifies its argument and its distance from that argument's memory, also if an offset exceeded 32 bits.
Addresses have 47 bits, as on a GPU. They keep their low 12 bits, so their alignment is that of the real ones.
"""

from __future__ import annotations

import linecache
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from verify.child.fresh import fresh
from verify.child.guards import notes
from verify.child.lanes import Lanes
from verify.child.races import WIDE_SCOPES, Access, Atomics, Meetings, races
from verify.excerpts import snippet
from verify.linking import told_line

REGION = 1 << 36  # bytes in a region, in addition to those of its argument
ADDRESSES = 1 << 47  # addresses of a GPU are below
_WRAP = 1 << 64
MAX_REPORTS = 20
# accesses by one program instance without new information, after which it counts as waiting for another
MAX_IDLE = 20_000
MAX_IDLE_WITHIN = 100  # the same for a program instance that runs while another is suspended
MAX_WATCHED = 8  # elements that a waiting program instance may poll
MAX_LANES = 1 << 24  # addresses recorded before they are searched for races; 8 bytes each


class Stalled(RuntimeError):
    """Error raised if a program instance waits for a store that no earlier program instance made."""


@dataclass(frozen=True)
class Region:
    """Memory of one argument in the kernel's address space.

    Attributes:
        name: Argument name.
        start: Address at which the tensor begins.
        low: First valid address.
        high: End address, exclusive.
        offset: Value to subtract, modulo 2^64, to get the real address.
        storage: Storage address; two arguments may share one.
        protected: Overload argument that owns the memory, if kernels must not write it; else empty.
        written: WRITTEN or NOTHING for each byte if the memory came uninitialised, else None.
    """

    name: str
    start: int
    low: int
    high: int
    offset: np.uint64
    storage: int
    protected: str
    written: np.ndarray | None = None


@dataclass(frozen=True)
class Memory:
    """Facts about the memory of a case.

    Attributes:
        groups: First byte and length for a rebuilt argument, by its buffer's address.
        protected: Arguments that must not be written: names by storage address.
        alignment: Alignment in bytes that a block access's first address must have.
    """

    groups: dict[int, tuple[int, int]]
    protected: dict[int, str]
    alignment: int


class Launch:
    """Address space and access log of one launch."""

    def __init__(self, kernel: str, file: str, memory: Memory) -> None:
        self.kernel = kernel
        self.program = (0, 0, 0)
        self.index = 0  # index of the program instance, in natural order
        self.alone = True  # a single program instance cannot race with another
        self.atomic = False  # True while a load or store is part of an atomic
        self.sem, self.scope = "acquire_release", "gpu"  # memory order and scope of the current atomic
        self.stalled = False  # True if a program instance was found to wait for another
        self.storages: dict[int, int] = {}  # bytes of each storage, by its address
        self._file = file
        self._memory = memory
        self._regions: list[Region] = []
        self._bounds: list[int] = [REGION]  # address at which each region begins, and the end of the last one
        self._log: list[Access] = []
        self._lanes = 0
        self._programs: dict[int, tuple[int, int, int]] = {}
        self._clock = 0  # counts accesses
        self._meetings: Meetings = {}
        # pairs of address and value that the program instance polled recently
        self._watched: set[tuple[int, bytes]] = set()
        self._idle = 0  # accesses since the last new value
        self._patience = MAX_IDLE
        self.lanes = Lanes()  # state of the current program instance

    def register(self, name: str, tensor: torch.Tensor) -> int:
        """Assign a region to `tensor` and return the address that the kernel gets."""
        storage = tensor.untyped_storage()
        base, length = storage.data_ptr(), storage.nbytes()
        if length:
            self.storages[base] = length
        real = base + int(tensor.storage_offset()) * tensor.element_size()  # the `data_ptr` of an empty tensor is 0
        first, length = self._memory.groups.get(base, (base, length))
        # The tensor starts in the middle, so that negative offsets stay in the region too, and at another place of it
        # than its neighbours, so that an offset that is 2^32 elements off does not meet their elements.
        begin = self._bounds[-1]
        start = begin + REGION // 2 + (len(self._regions) * 0x9E3779B1 % (1 << 20) << 12) + (real & 0xFFF)
        self._bounds.append(begin + REGION + -(-length // REGION) * REGION)
        if self._bounds[-1] > ADDRESSES:
            raise ValueError(f"{self.kernel}: more than {len(self._regions)} tensor arguments of these sizes")
        offset = start - real
        protected = self._memory.protected.get(base, "") if base else ""
        low = first + offset
        shift, written = np.uint64(offset % _WRAP), fresh.written(base)
        self._regions.append(Region(name, start, low, low + length, shift, base, protected, written))
        return start

    def _region(self, address: int) -> Region | None:
        """Return the region that an address lies in, or None."""
        index = bisect_right(self._bounds, address) - 1
        return self._regions[index] if 0 <= index < len(self._regions) else None

    def enter(self, index: int, program: tuple[int, int, int]) -> None:
        """Make this program instance the current one."""
        self.index, self.program = index, program
        self.lanes = Lanes()
        self.progress()
        if not self.alone:
            self._programs[index] = program

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the current program instance while others run."""
        suspended = self.index, self.program, self.lanes
        self._patience = MAX_IDLE_WITHIN
        try:
            yield
        finally:
            self.index, self.program, self.lanes = suspended
            self._patience = MAX_IDLE
            self.progress()

    def forget(self, index: int) -> None:
        """Discard the accesses by a program instance whose effects were undone."""
        self._log = [access for access in self._log if access.program != index]
        self._meetings.pop(index, None)

    def admit(
        self, addresses: np.ndarray, mask: np.ndarray, size: int, kind: str, values: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Check the addresses of one access and translate them.

        Args:
            addresses: Virtual addresses, one for each lane.
            mask: Active lanes.
            size: Bytes in an element.
            kind: `load`, `store` or `atomic`.
            values: Values to store.

        Returns:
            The real addresses, and the lanes that may be accessed; None instead of a mask allows all active
            lanes.
        """
        active = addresses.reshape(-1) if mask.all() else addresses[mask]
        if not active.size:
            return addresses, None
        low, high = int(active.min()), int(active.max())
        region = self._region(low)
        if region is None or low < region.low or high + size > region.high or _misaligned(active, size).any():
            return self._admit_slowly(addresses, mask, size, kind, values)
        alignment = self._memory.alignment
        if alignment > 1 and active.size > 1 and low % alignment:
            self._report_alignment(region, low, kind, alignment)
        if region.protected and kind != "load":
            self._report_protected(region, low, kind)
        if region.written is not None:
            self._check_written(region, region.written, active, size, kind)
        if not self.alone:
            self._note(region, active, kind, None if values is None else _selected(values, mask))
        return addresses - region.offset, None

    def _admit_slowly(
        self, addresses: np.ndarray, mask: np.ndarray, size: int, kind: str, values: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Check lane by lane, because several arguments are accessed or an address belongs to none."""
        real, allowed = addresses.copy(), np.zeros(addresses.shape, dtype=bool)
        numbers = np.searchsorted(np.array(self._bounds, dtype=np.uint64), addresses, side="right")
        for number in np.unique(numbers[mask]):
            lanes = mask & (numbers == number)
            region = self._region(int(addresses[lanes][0]))
            if region is None:
                self._report_stray(int(addresses[lanes][0]), size, kind)
                continue
            inside = (addresses >= np.uint64(region.low)) & (addresses <= np.uint64(max(region.high - size, 0)))
            aligned = ~_misaligned(addresses, size)
            self._report_lanes(region, addresses, lanes & ~inside, size, kind)
            if (lanes & ~aligned & inside).any():
                self._report_alignment(region, int(addresses[lanes & ~aligned & inside][0]), kind, size)
            allowed |= (good := lanes & inside & aligned)
            real[lanes] -= region.offset
            if region.protected and kind != "load" and good.any():
                self._report_protected(region, int(addresses[good][0]), kind)
            if region.written is not None and good.any():
                self._check_written(region, region.written, addresses[good], size, kind)
            if not self.alone and good.any():
                self._note(region, addresses[good], kind, None if values is None else _selected(values, good))
        return real, allowed

    def by_lane(
        self, addresses: np.ndarray, real: np.ndarray, mask: np.ndarray, kind: str, values: np.ndarray | None = None
    ) -> None:
        """Check an admitted access for races between lanes within the program instance.

        Args:
            addresses: Virtual addresses.
            real: Real addresses.
            mask: Lanes that are performed.
            kind: `load`, `store` or `atomic`.
            values: Values to store.
        """
        if not mask.any():
            return
        if kind == "load":
            race = self.lanes.load(real, mask)
        elif values is None:
            race = self.lanes.atomic(real, mask)
        else:
            race = self.lanes.store(real, mask, values)
        if race is not None:
            address = int(addresses[mask & (real == race[0])][0])
            region = self._region(address)
            assert region is not None  # because the access was admitted
            text = f"in one program, {race[1]}: at byte {address - region.start} of {region.name}"
            self._report("race", self._line(), self.program, region.name, address - region.start, text, race[2])

    @property
    def communicates(self) -> bool:
        """Return True if a program instance used an atomic on a single element, by which others may be ordered."""
        return bool(self._meetings)

    def progress(self) -> None:
        """Record that the program instance did something visible to others, so that it is not polling."""
        self._watched.clear()
        self._idle = 0

    def saw(self, addresses: np.ndarray, values: np.ndarray) -> None:
        """Record the values that the program instance loaded.

        Raises:
            Stalled: The program instance only polls a few elements again and again.
        """
        observation = (int(addresses.flat[0]), values.tobytes()) if addresses.size == 1 else None
        if observation is None or len(self._watched) > MAX_WATCHED:
            self.progress()
        elif observation not in self._watched:
            self._watched.add(observation)
            self._idle = 0
        else:
            self._idle += 1
            if self._idle > self._patience:
                self.stalled = True
                location = f"{self.kernel}, {told_line(self._text(), self._line())}, program {self.program}"
                raise Stalled(f"{location}, waits for another program; they run one after the other, in any order")

    def hinted(self, text: str) -> None:
        """Report a compiler hint that is false."""
        self._report("hint", self._line(), self.program, "", 0, text)

    def _note(self, region: Region, addresses: np.ndarray, kind: str, values: np.ndarray | None) -> None:
        self._clock += 1
        atomic = kind == "atomic" or self.atomic
        if atomic and addresses.size == 1:
            cell = int(addresses[0] - region.offset)
            meetings = self._meetings.setdefault(self.index, {}).setdefault(cell, Atomics())
            meetings.add(self._clock, self.sem, self.scope)
        values, narrow = None if atomic else values, atomic and self.scope not in WIDE_SCOPES
        self._log.append(Access(region, self.index, self._clock, self._line(), addresses, values, atomic, narrow))
        self._lanes += addresses.size
        if self._lanes > MAX_LANES:
            self.finish()

    def finish(self) -> None:
        """Report the races among the accesses so far, and clear the log."""
        for race in races(self._log, self._meetings):
            region, first, second = race.access.region, self._programs[race.other], self._programs[race.access.program]
            offset = (race.address + int(region.offset)) % _WRAP - region.start
            action = "stored different values at" if race.stores else "accessed, and one changed,"
            cause = "no atomics order them"
            if race.narrow:
                action, cause = "use atomics at", "scope='cta' is no atomic for other programs; use scope='gpu'"
            text = f"programs {first} and {second} {action} byte {offset} of {region.name}: {cause}"
            self._report("race", race.access.line, second, region.name, offset, text, race.stores)
        self._log, self._lanes = [], 0

    def _check_written(self, region: Region, written: np.ndarray, active: np.ndarray, size: int, kind: str) -> None:
        """Report the first lane that loads memory which nothing has written; record what stores and atomics write."""
        words = written.view(f"u{size}")
        places = (active - region.offset - np.uint64(region.storage)) // np.uint64(size)
        if kind != "store":
            undefined = words[places] != np.iinfo(words.dtype).max
            if undefined.any():
                self._report_undefined(region, int(active[undefined][0]), size)
        if kind != "load":
            words[places] = np.iinfo(words.dtype).max

    def _report_lanes(self, region: Region, addresses: np.ndarray, bad: np.ndarray, size: int, kind: str) -> None:
        if not bad.any():
            return
        offset = int(addresses[bad][0]) - region.start
        extent = f"has bytes {region.low - region.start} to {region.high - region.start}"
        extent = "is empty" if region.low == region.high else extent
        lanes = int(bad.sum())
        text = f"{lanes} lanes {kind} {size} bytes outside {region.name}, which {extent}: at byte {offset}"
        text += f" (element {offset // size})" if offset % size == 0 else ""
        self._report("bounds", self._line(), self.program, region.name, offset, text)

    def _report_stray(self, address: int, size: int, kind: str) -> None:
        cause = "a pointer that was computed or loaded, or an offset far out"
        text = f"{kind} of {size} bytes at an address that belongs to no argument: {cause}"
        self._report("bounds", self._line(), self.program, "", address % REGION, text)

    def _report_undefined(self, region: Region, address: int, size: int) -> None:
        offset = address - region.start
        text = f"load of {size} bytes that nothing has written, in memory from torch.empty: at byte {offset} of"
        text += f" {region.name}; write it first, or mask the load"
        self._report("undefined", self._line(), self.program, region.name, offset, text)

    def _report_protected(self, region: Region, address: int, kind: str) -> None:
        offset = address - region.start
        owner = f"argument {region.protected}, which this overload leaves alone"
        text = f"{kind} at byte {offset} of {region.name}: {owner}"
        self._report("argument", self._line(), self.program, region.name, offset, text)

    def _report_alignment(self, region: Region, address: int, kind: str, alignment: int) -> None:
        offset = address - region.start
        text = f"{kind} at byte {offset} of {region.name}, not aligned to {alignment} bytes"
        self._report("alignment", self._line(), self.program, region.name, offset, text)

    def _report(
        self, kind: str, line: int, program: Iterable[int], name: str, offset: int, text: str, stores: bool = False
    ) -> None:
        key = (kind, self.kernel, line, name, stores)
        if key in notes.accesses or len(notes.accesses) >= MAX_REPORTS:
            return
        shown = snippet(self._text(), line)
        entry = {
            "kind": kind,
            "kernel": self.kernel,
            "line": line,
            "program": list(program),
            "snippet": shown,
            "stores": stores,
        }
        location = f"{self.kernel}, {told_line(self._text(), line)}, program {tuple(program)}"
        notes.accesses[key] = {**entry, "argument": name, "offset": offset, "text": f"{text} ({location})"}

    def _text(self) -> str:
        return "".join(linecache.getlines(self._file))

    def _line(self) -> int:
        """Return the current line of the kernel file in the call stack, or 0 if no frame is from the file."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 0


def _misaligned(addresses: np.ndarray, size: int) -> np.ndarray:
    misaligned: np.ndarray = (addresses & np.uint64(size - 1)) != 0
    return misaligned


def _selected(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    whole = np.broadcast_to(values, mask.shape)
    selected: np.ndarray = whole.reshape(-1) if mask.all() else whole[mask]
    return selected
