"""Every access of one interpreted launch, checked by the argument it comes from: bounds, alignment, races.

The kernel never gets a real address. Each tensor argument is given a region of 2^52 bytes of its own, so an address
tells its argument whatever arithmetic made it, and how far from that argument's memory it lies. Addresses keep their
low 12 bits, so they are as aligned as the real ones.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from verify.child.guards import notes
from verify.child.lanes import Lanes
from verify.child.races import Access, Meetings, races
from verify.excerpts import snippet
from verify.linking import told_line

REGION = 52  # log2 of the bytes of a region
MAX_REGIONS = 2000  # so that an address is positive as an int64 too
MAX_REPORTS = 20
MAX_IDLE = 20_000  # accesses of one program that see nothing new, before it is said to wait for another
MAX_IDLE_WITHIN = 100  # of one that runs in the midst of another
MAX_WATCHED = 8  # elements that a program which waits looks at
MAX_LANES = 1 << 24  # addresses kept before they are searched for races; 8 bytes each


class Stalled(RuntimeError):
    """A program waits for what no program before it has stored."""


@dataclass(frozen=True)
class Region:
    """An argument's memory as the kernel sees it: addresses [low, high), `start` where the tensor begins.

    offset: what to subtract for the real address. storage: which memory it is, for two arguments may share one.
    protected: the argument of the overload whose memory it is, if kernels must not write that; else empty.
    """

    name: str
    start: int
    low: int
    high: int
    offset: np.uint64
    storage: int
    protected: str


@dataclass(frozen=True)
class Memory:
    """What is known of the case's memory. groups: the first byte and length of a rebuilt argument, by the address of
    its buffer. protected: names of the arguments that must not be written, by the address of their storage.
    alignment: bytes to which a block's first address must be aligned.
    """

    groups: dict[int, tuple[int, int]]
    protected: dict[int, str]
    alignment: int


class Launch:
    """The memory of one launch."""

    def __init__(self, kernel: str, file: str, memory: Memory) -> None:
        self.kernel = kernel
        self.program = (0, 0, 0)
        self.index = 0  # of the program, in natural order
        self.alone = True  # one program: nobody to race with
        self.atomic = False  # while a load or store is an atomic one
        self.stalled = False  # whether a program was found to wait for another
        self.storages: dict[int, int] = {}  # bytes of each, by its address
        self._file = file
        self._memory = memory
        self._regions: dict[int, Region] = {}
        self._log: list[Access] = []
        self._lanes = 0
        self._programs: dict[int, tuple[int, int, int]] = {}
        self._clock = 0  # counts accesses
        self._met: Meetings = {}
        self._watched: set[tuple[int, bytes]] = set()  # what the program looked at lately: an address, and what it saw
        self._idle = 0  # accesses since it last saw something new
        self._patience = MAX_IDLE
        self.lanes = Lanes()  # of the program

    def register(self, name: str, tensor: torch.Tensor) -> int:
        """The address that the kernel gets for `tensor`."""
        number = len(self._regions) + 1
        if number > MAX_REGIONS:
            raise ValueError(f"{self.kernel}: more than {MAX_REGIONS} tensor arguments")
        storage = tensor.untyped_storage()
        at, length = storage.data_ptr(), storage.nbytes()
        if length:
            self.storages[at] = length
        real = at + int(tensor.storage_offset()) * tensor.element_size()  # `data_ptr` of an empty tensor is 0
        first, length = self._memory.groups.get(at, (at, length))
        start = (number << REGION) + (1 << REGION - 1) + (real & 0xFFF)
        offset = start - real
        protected = self._memory.protected.get(at, "") if at else ""
        low = first + offset
        self._regions[number] = Region(name, start, low, low + length, np.uint64(offset), at, protected)
        return start

    def enter(self, index: int, program: tuple[int, int, int]) -> None:
        """From here on it is this program that runs."""
        self.index, self.program = index, program
        self.lanes = Lanes()
        self.progress()
        if not self.alone:
            self._programs[index] = program

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """The program stands still, and others run."""
        stands = self.index, self.program, self.lanes
        self._patience = MAX_IDLE_WITHIN
        try:
            yield
        finally:
            self.index, self.program, self.lanes = stands
            self._patience = MAX_IDLE
            self.progress()

    def forget(self, index: int) -> None:
        """What this program did was taken back."""
        self._log = [access for access in self._log if access.program != index]
        self._met.pop(index, None)

    def admit(
        self, addresses: np.ndarray, mask: np.ndarray, size: int, kind: str, values: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The real addresses, and which lanes may be accessed; None if all that `mask` has on may be.

        size: bytes of an element. kind: load, store or atomic. values: what is stored.
        """
        active = addresses.reshape(-1) if mask.all() else addresses[mask]
        if not active.size:
            return addresses, None
        low, high = int(active.min()), int(active.max())
        region = self._regions.get(low >> REGION)
        if region is None or low < region.low or high + size > region.high or _misaligned(active, size).any():
            return self._admit_slowly(addresses, mask, size, kind, values)
        alignment = self._memory.alignment
        if alignment > 1 and active.size > 1 and low % alignment:
            self._report_alignment(region, low, kind, alignment)
        if region.protected and kind != "load":
            self._report_protected(region, low, kind)
        if not self.alone:
            self._note(region, active, kind, None if values is None else _selected(values, mask))
        return addresses - region.offset, None

    def _admit_slowly(
        self, addresses: np.ndarray, mask: np.ndarray, size: int, kind: str, values: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Lane by lane: several arguments, or an address that is none's."""
        real, fine = addresses.copy(), np.zeros(addresses.shape, dtype=bool)
        for number in np.unique(addresses[mask] >> np.uint64(REGION)):
            lanes = mask & (addresses >> np.uint64(REGION) == number)
            region = self._regions.get(int(number))
            if region is None:
                self._report_stray(int(addresses[lanes][0]), size, kind)
                continue
            inside = (addresses >= np.uint64(region.low)) & (addresses <= np.uint64(max(region.high - size, 0)))
            aligned = ~_misaligned(addresses, size)
            self._report_lanes(region, addresses, lanes & ~inside, size, kind)
            if (lanes & ~aligned & inside).any():
                self._report_alignment(region, int(addresses[lanes & ~aligned & inside][0]), kind, size)
            fine |= (good := lanes & inside & aligned)
            real[lanes] -= region.offset
            if region.protected and kind != "load" and good.any():
                self._report_protected(region, int(addresses[good][0]), kind)
            if not self.alone and good.any():
                self._note(region, addresses[good], kind, None if values is None else _selected(values, good))
        return real, fine

    def by_lane(
        self, addresses: np.ndarray, real: np.ndarray, mask: np.ndarray, kind: str, values: np.ndarray | None = None
    ) -> None:
        """Of an access that was admitted: what its lanes do to each other. mask: the lanes that are performed."""
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
            region = self._regions[address >> REGION]
            text = f"in one program, {race[1]}: at byte {address - region.start} of {region.name}"
            self._report("race", self._line(), self.program, region.name, address - region.start, text, race[2])

    def progress(self) -> None:
        """The program did something that others can see."""
        self._watched.clear()
        self._idle = 0

    def saw(self, addresses: np.ndarray, values: np.ndarray) -> None:
        """The program loaded `values`. Raises Stalled if it does nothing but look at a few elements again and again."""
        seen = (int(addresses.flat[0]), values.tobytes()) if addresses.size == 1 else None
        if seen is None or len(self._watched) > MAX_WATCHED:
            self.progress()
        elif seen not in self._watched:
            self._watched.add(seen)
            self._idle = 0
        else:
            self._idle += 1
            if self._idle > self._patience:
                self.stalled = True
                where = f"{self.kernel}, {told_line(self._text(), self._line())}, program {self.program}"
                raise Stalled(f"{where}, waits for another program; they run one after the other, in any order")

    def hinted(self, text: str) -> None:
        """A hint to the compiler is false."""
        self._report("hint", self._line(), self.program, "", 0, text)

    def _note(self, region: Region, addresses: np.ndarray, kind: str, values: np.ndarray | None) -> None:
        self._clock += 1
        atomic = kind == "atomic" or self.atomic
        if atomic and addresses.size == 1:
            cell = int(addresses[0] - region.offset)
            self._met.setdefault(self.index, {}).setdefault(cell, []).append(self._clock)
        values = None if atomic else values
        self._log.append(Access(region, self.index, self._clock, self._line(), addresses, values, atomic))
        self._lanes += addresses.size
        if self._lanes > MAX_LANES:
            self.finish()

    def finish(self) -> None:
        """Report the races among the accesses so far, and forget them."""
        for race in races(self._log, self._met):
            region, first, second = race.access.region, self._programs[race.other], self._programs[race.access.program]
            offset = race.address + int(region.offset) - region.start
            what = "stored different values at" if race.stores else "accessed, and one changed,"
            text = f"programs {first} and {second} {what} byte {offset} of {region.name}: no atomics order them"
            self._report("race", race.access.line, second, region.name, offset, text, race.stores)
        self._log, self._lanes = [], 0

    def _report_lanes(self, region: Region, addresses: np.ndarray, bad: np.ndarray, size: int, kind: str) -> None:
        if not bad.any():
            return
        offset = int(addresses[bad][0]) - region.start
        span = f"has bytes {region.low - region.start} to {region.high - region.start}"
        span = "is empty" if region.low == region.high else span
        lanes = int(bad.sum())
        text = f"{lanes} lanes {kind} {size} bytes outside {region.name}, which {span}: at byte {offset}"
        text += f" (element {offset // size})" if offset % size == 0 else ""
        self._report("bounds", self._line(), self.program, region.name, offset, text)

    def _report_stray(self, address: int, size: int, kind: str) -> None:
        what = "a pointer that was computed or loaded, or an offset far out"
        text = f"{kind} of {size} bytes at an address that belongs to no argument: {what}"
        self._report("bounds", self._line(), self.program, "", address & (1 << REGION) - 1, text)

    def _report_protected(self, region: Region, address: int, kind: str) -> None:
        offset = address - region.start
        whose = f"argument {region.protected}, which this overload leaves alone"
        text = f"{kind} at byte {offset} of {region.name}: {whose}"
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
        place = {
            "kind": kind,
            "kernel": self.kernel,
            "line": line,
            "program": list(program),
            "snippet": shown,
            "stores": stores,
        }
        where = f"{self.kernel}, {told_line(self._text(), line)}, program {tuple(program)}"
        notes.accesses[key] = {**place, "argument": name, "offset": offset, "text": f"{text} ({where})"}

    def _text(self) -> str:
        return "".join(linecache.getlines(self._file))

    def _line(self) -> int:
        """The line of the kernel file that is being interpreted; 0 if it is not there."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return frame.f_lineno if frame is not None else 0


def _misaligned(addresses: np.ndarray, size: int) -> np.ndarray:
    found: np.ndarray = (addresses & np.uint64(size - 1)) != 0
    return found


def _selected(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    whole = np.broadcast_to(values, mask.shape)
    selected: np.ndarray = whole.reshape(-1) if mask.all() else whole[mask]
    return selected
