"""Memory between the program and the thread that writes: a bounded number of slots, pinned where CUDA is in use.

What lies on a GPU is first copied there, in stream order and so before the program can change it, and from that copy to
the host on a stream of its own: the program's next kernels, and the hashes of the next call, do not wait for the bus.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch

from capture.device import begin_copy
from traces.span import Span

SLOT = 4 << 20  # bytes; copies of 32 MB were slower, since what else comes from the GPU waits for each
SMALL = 64 << 10  # bytes; what is shorter is copied without a slot
_SLAB = 8  # slots that are allocated at once
_TOGETHER = 8  # slots that are filled by copies that are waited for together
_ROOMS = 16  # of so many slots on each GPU, so that the bus has work while the host has calls that bring nothing new
_SHARE = 8  # of the bytes that are free on a GPU they take one in so many at most


class Chunk(NamedTuple):
    """Consecutive bytes of a span: the first `size` of `host`. slot: whether that is to be given back. ready: end of
    the copy from a device, if there is one."""

    host: torch.Tensor
    size: int
    slot: bool
    ready: torch.cuda.Event | None = None

    @property
    def data(self) -> memoryview:
        return self.host.numpy().data[: self.size]


class Slots:
    """At most `limit` bytes, at least one slot. `take` waits until there are as many as it is asked for."""

    def __init__(self, limit: int) -> None:
        self._free: list[torch.Tensor] = []
        self._slots = self._left = max(1, limit // SLOT)  # in all, and those that may still be allocated
        self._most = min(_TOGETHER, self._slots)  # that are taken ahead of what is given back
        self._changed = threading.Condition()
        self._outlets: dict[torch.device, _Outlet] = {}

    def take(self, number: int) -> list[torch.Tensor]:
        """uint8 tensors of SLOT bytes in host memory, not more than there are in all."""
        with self._changed:
            while len(self._free) < number:
                if not self._left:
                    self._changed.wait()
                    continue
                some = min(_SLAB, self._left)
                self._left -= some
                slab = torch.empty(some * SLOT, dtype=torch.uint8, pin_memory=on_cuda())
                self._free += torch.split(slab, SLOT)
            taken = self._free[-number:]
            del self._free[-number:]
            return taken

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
                with torch.cuda.device(device.index):
                    yield from self._from_device(device, [(i, s.raw() if raw is None else raw) for i, (s, raw) in some])

    def _from_host(self, data: memoryview) -> Iterator[Chunk]:
        for start in range(0, len(data), SLOT):
            piece = np.frombuffer(data[start : start + SLOT], np.uint8)
            (slot,) = self.take(1)
            np.copyto(slot.numpy()[: len(piece)], piece)
            yield Chunk(slot, len(piece), slot=True)

    def _from_device(self, device: torch.device, raws: list[tuple[int, torch.Tensor]]) -> Iterator[tuple[int, Chunk]]:
        parts: list[_Part] = []
        left = self._most
        for i, raw in raws:
            size, start = raw.numel(), 0
            if size <= SMALL:
                host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
                parts.append(_Part(i, raw, [host], slots=False))
                continue
            while start < size:
                part = raw[start : start + left * SLOT]
                hosts = self.take(-(-part.numel() // SLOT))
                parts.append(_Part(i, part, hosts, slots=True))
                start, left = start + part.numel(), left - len(hosts)
                if not left:
                    yield from self._copied(device, parts)
                    parts, left = [], self._most
        yield from self._copied(device, parts)

    def _copied(self, device: torch.device, parts: list[_Part]) -> Iterator[tuple[int, Chunk]]:
        ready = arrived = None
        if small := [p for p in parts if not p.slots]:
            for part in small:
                begin_copy(part.hosts[0], part.source)
            ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
            ready.record()
        if large := [p for p in parts if p.slots]:
            outlet = self._outlets.get(device)
            if outlet is None:
                outlet = self._outlets[device] = _Outlet()
            arrived = outlet.copy(large)
        for span, source, hosts, slots in parts:
            for k, host in enumerate(hosts):
                yield span, Chunk(host, min(source.numel() - k * SLOT, SLOT), slots, arrived if slots else ready)


class _Part(NamedTuple):
    """Consecutive bytes of a span on a GPU, and where they go, SLOT by SLOT. slots: whether these are slots."""

    span: int
    source: torch.Tensor
    hosts: list[torch.Tensor]
    slots: bool


class _Room:
    """Memory of _TOGETHER slots on the current GPU. there, arrived: events of when the last bytes that came were there,
    and had been copied on; made once, since to make one takes the host longer than a copy."""

    def __init__(self) -> None:
        self.bytes = torch.empty(_TOGETHER * SLOT, dtype=torch.uint8, device="cuda")
        self.slots = torch.split(self.bytes, SLOT)
        self.there, self.arrived = torch.cuda.Event(), torch.cuda.Event()  # type: ignore[no-untyped-call]


class _Outlet:
    """The way from the current GPU to the host: rooms, used in turn, and a stream for the copies out of them.

    A room is used again when its copy has arrived, for which the GPU waits and not the host. Without memory to spare
    there are no rooms, and the program's kernels wait for the copies.
    """

    def __init__(self) -> None:
        free, _ = torch.cuda.mem_get_info()
        self._rooms = [_Room() for _ in range(min(_ROOMS, free // (_SHARE * _TOGETHER * SLOT)))]
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def copy(self, parts: list[_Part]) -> torch.cuda.Event:
        """Begin to copy bytes, as they are now on the device's current stream, to up to _TOGETHER slots; an event that
        comes when they have arrived, or later: after the next copy by way of the same room."""
        stream = torch.cuda.current_stream()
        if not self._rooms:
            for part in parts:
                _fill(part, torch.split(part.source, SLOT))
            ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
            ready.record(stream)
            return ready
        room = self._rooms.pop(0)
        self._rooms.append(room)
        stream.wait_event(room.arrived)
        places, at = [], 0
        for part in parts:
            places.append(room.slots[at : at + len(part.hosts)])
            room.bytes[at * SLOT : at * SLOT + part.source.numel()].copy_(part.source, non_blocking=True)
            at += len(part.hosts)
        room.there.record(stream)
        torch.cuda.set_stream(self._stream)  # `with torch.cuda.stream()` takes the host as long as two copies
        try:
            self._stream.wait_event(room.there)
            for part, slots in zip(parts, places, strict=True):
                _fill(part, slots)
            room.arrived.record(self._stream)
        finally:
            torch.cuda.set_stream(stream)
        return room.arrived


def _fill(part: _Part, pieces: Sequence[torch.Tensor]) -> None:
    """Begin to copy a part from where it lies, SLOT by SLOT, to its hosts."""
    left = part.source.numel()
    for host, piece in zip(part.hosts, pieces, strict=True):
        if left < SLOT:
            host, piece = host[:left], piece[:left]  # noqa: PLW2901 - of the last the beginning alone
        host.copy_(piece, non_blocking=True)
        left -= SLOT


def on_cuda() -> bool:
    """Whether the program uses a GPU."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
