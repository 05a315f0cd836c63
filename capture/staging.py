"""Memory between the program and the thread that writes: a bounded number of slots, pinned where CUDA is in use.

What lies on a GPU is first copied there, in stream order and so before the program can change it, and from that copy to
the host on a stream of its own: the program's next kernels, and the hashes of the next call, do not wait for the bus.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

import numpy as np
import torch

from traces.span import Span

SLOT = 4 << 20  # bytes
SMALL = 64 << 10  # bytes; what is shorter is copied without a slot
_SLAB = 8  # slots that are allocated at once
_TOGETHER = 8  # slots that are filled by copies that are waited for together
_ROOMS = 4  # of so many slots on each GPU
_SPARE = 1 << 30  # bytes that must be free on a GPU for it to have them


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive bytes of a span. slot: to give back. ready: end of the copy from a device, if there is one."""

    data: memoryview
    slot: torch.Tensor | None = None
    ready: torch.cuda.Event | None = None


class Slots:
    """At most `limit` bytes, at least one slot. `take` waits until one is free."""

    def __init__(self, limit: int) -> None:
        self._free: list[torch.Tensor] = []
        self._slots = self._left = max(1, limit // SLOT)  # in all, and those that may still be allocated
        self._changed = threading.Condition()
        self._outlets: dict[torch.device, _Outlet] = {}

    def take(self) -> torch.Tensor:
        """A uint8 tensor of SLOT bytes in host memory."""
        with self._changed:
            if not self._free and self._left:
                number = min(_SLAB, self._left)
                self._left -= number
                slab = torch.empty(number * SLOT, dtype=torch.uint8, pin_memory=on_cuda())
                self._free += torch.split(slab, SLOT)
            self._changed.wait_for(lambda: self._free)
            return self._free.pop()

    @property
    def scarce(self) -> bool:
        """Whether more than half of them are in use."""
        return 2 * (len(self._free) + self._left) < self._slots

    def give(self, slot: torch.Tensor) -> None:
        """Make a slot free again."""
        with self._changed:
            self._free.append(slot)
            self._changed.notify()

    def chunks(self, spans: Iterable[tuple[Span, torch.Tensor | None]]) -> Iterator[tuple[int, Chunk]]:
        """Copies of the bytes of spans, piece by piece, as they are now on the current streams of their devices, each
        with the number of its span.

        A span comes with its bytes as a tensor, if there is one already. At most _TOGETHER slots are taken ahead of
        what was yielded.
        """
        for device, some in groupby(enumerate(spans), key=lambda numbered: numbered[1][0].device):
            if device.type == "cpu":
                for i, (span, _) in some:
                    yield from ((i, chunk) for chunk in self._from_host(span.host()))
            else:
                with torch.cuda.device(device):
                    yield from self._from_device(device, [(i, s.raw() if raw is None else raw) for i, (s, raw) in some])

    def _from_host(self, data: memoryview) -> Iterator[Chunk]:
        for start in range(0, len(data), SLOT):
            piece = np.frombuffer(data[start : start + SLOT], np.uint8)
            slot = self.take()
            np.copyto(slot.numpy()[: len(piece)], piece)
            yield Chunk(slot.numpy().data[: len(piece)], slot)

    def _from_device(self, device: torch.device, raws: list[tuple[int, torch.Tensor]]) -> Iterator[tuple[int, Chunk]]:
        parts: list[_Part] = []
        left = most = min(_TOGETHER, self._slots)
        for i, raw in raws:
            if raw.numel() <= SMALL:
                parts.append(_Part(i, raw, [torch.empty(raw.numel(), dtype=torch.uint8, pin_memory=True)]))
                continue
            start = 0
            while start < raw.numel():
                piece = raw[start : start + left * SLOT]
                slots = [self.take() for _ in range(-(-piece.numel() // SLOT))]
                parts.append(_Part(i, piece, [s[: piece.numel() - k * SLOT] for k, s in enumerate(slots)], slots))
                start, left = start + piece.numel(), left - len(slots)
                if not left:
                    yield from self._copied(device, parts)
                    parts, left = [], most
        yield from self._copied(device, parts)

    def _copied(self, device: torch.device, parts: list[_Part]) -> Iterator[tuple[int, Chunk]]:
        small, large = [p for p in parts if not p.slots], [p for p in parts if p.slots]
        ready = _copy([p.source for p in small], [p.hosts[0] for p in small]) if small else None
        arrived = None
        if large:
            outlet = self._outlets.get(device)
            if outlet is None:
                outlet = self._outlets[device] = _Outlet()
            arrived = outlet.copy(large)
        for part in parts:
            for host, slot in zip_longest(part.hosts, part.slots):
                yield part.span, Chunk(host.numpy().data, slot, arrived if part.slots else ready)


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive bytes of a span on a GPU. hosts: where they go, piece by piece; slots: these, if they are slots."""

    span: int
    source: torch.Tensor
    hosts: list[torch.Tensor]
    slots: list[torch.Tensor] = field(default_factory=list)


class _Room:
    """Memory of _TOGETHER slots on the current GPU. there: when bytes have been copied to it. arrived: when they have
    been copied on, of the last that were; None before the first."""

    def __init__(self) -> None:
        self.bytes = torch.empty(_TOGETHER * SLOT, dtype=torch.uint8, device="cuda")
        self.there = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self.arrived: torch.cuda.Event | None = None


class _Outlet:
    """The way from the current GPU to the host: rooms, used in turn, and a stream for the copies out of them.

    A room is used again when its copy has arrived, for which the GPU waits and not the host. Without memory to spare
    there are no rooms, and the program's kernels wait for the copies.
    """

    def __init__(self) -> None:
        free, _ = torch.cuda.mem_get_info()
        self._rooms = [_Room() for _ in range(_ROOMS if free >= _SPARE else 0)]
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def copy(self, parts: list[_Part]) -> torch.cuda.Event:
        """Begin to copy bytes, as they are now on the device's current stream, to up to _TOGETHER slots; an event that
        comes when they have arrived, or later: after the next copy by way of the same room."""
        hosts = [host for part in parts for host in part.hosts]
        if not self._rooms:
            return _copy([piece for part in parts for piece in torch.split(part.source, SLOT)], hosts)
        room = self._rooms.pop(0)
        self._rooms.append(room)
        if room.arrived is not None:
            room.arrived.wait()
        at, places = 0, []
        for part in parts:
            places.append(room.bytes[at : at + part.source.numel()])
            at += len(part.slots) * SLOT
        _copy([part.source for part in parts], places, room.there)
        with torch.cuda.stream(self._stream):
            room.there.wait()
            pieces = [piece for place in places for piece in torch.split(place, SLOT)]
            room.arrived = _copy(pieces, hosts, room.arrived)
        return room.arrived


def _copy(
    sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor], ready: torch.cuda.Event | None = None
) -> torch.cuda.Event:
    """Begin to copy bytes in the order of the device's current stream. ready: the event to use again, if any; to make
    one takes the host longer than a copy."""
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source, non_blocking=True)
    ready = ready or torch.cuda.Event()  # type: ignore[no-untyped-call]
    ready.record()
    return ready


def on_cuda() -> bool:
    """Whether the program uses a GPU."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
