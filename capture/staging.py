"""Staging memory between the program and the writer thread: a bounded number of slots, pinned if CUDA is in use.

Bytes on a GPU are first copied within the GPU, in stream order, so before the program can change them. A stream of its
own then copies them to the host. So neither the program's next kernels nor the next call's hashes wait for the bus.
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

SLOT = 4 << 20  # bytes; copies of 32 MB were slower, because other transfers from the GPU wait for each copy
SMALL = 64 << 10  # bytes; shorter spans are copied without a slot
_SLAB = 8  # slots that are allocated at once
_TOGETHER = 8  # slots filled by one group of copies, with one event for the group
_ROOMS = 16  # rooms on each GPU, enough to keep the bus busy while the host handles calls without new contents
_SHARE = 8  # all rooms together use at most one part in so many of a GPU's free memory


class Chunk(NamedTuple):
    """Consecutive bytes of a span: the first `size` bytes of `host`.

    Attributes:
        host: Host memory.
        size: Number of valid bytes.
        slot: True if `host` must be given back.
        ready: Event at the end of the copy from a device, or None.
    """

    host: torch.Tensor
    size: int
    slot: bool
    ready: torch.cuda.Event | None = None

    @property
    def data(self) -> memoryview:
        return self.host.numpy().data[: self.size]


class Slots:
    """A pool of at most `limit` bytes, but at least one slot. `take` blocks until enough slots are free."""

    def __init__(self, limit: int) -> None:
        self._free: list[torch.Tensor] = []
        self._slots = self._left = max(1, limit // SLOT)  # slots in total, and slots that may still be allocated
        self._most = min(_TOGETHER, self._slots)  # slots that may be taken before earlier ones are given back
        self._changed = threading.Condition()
        self._outlets: dict[torch.device, _Outlet] = {}

    def take(self, number: int) -> list[torch.Tensor]:
        """Return uint8 tensors of SLOT bytes in host memory. `number` must not exceed the pool."""
        with self._changed:
            while len(self._free) < number:
                if not self._left:
                    self._changed.wait()
                    continue
                count = min(_SLAB, self._left)
                self._left -= count
                slab = torch.empty(count * SLOT, dtype=torch.uint8, pin_memory=on_cuda())
                self._free += torch.split(slab, SLOT)
            taken = self._free[-number:]
            del self._free[-number:]
            return taken

    @property
    def scarce(self) -> bool:
        """Return True if more than half of the slots are in use."""
        return 2 * (len(self._free) + self._left) < self._slots

    def give(self, slot: torch.Tensor) -> None:
        """Make a slot free again."""
        with self._changed:
            self._free.append(slot)
            self._changed.notify()

    def chunks(self, spans: Iterable[tuple[Span, torch.Tensor | None]]) -> Iterator[tuple[int, Chunk]]:
        """Yield copies of spans in chunks, each with the index of its span.

        The copies hold the bytes as they are now on the current streams of the spans' devices.

        Args:
            spans: Each span comes with its bytes as a tensor if there is one already, else with None. At most _TOGETHER
                slots are taken ahead of the chunks that were yielded.
        """
        for device, numbered_spans in groupby(enumerate(spans), key=lambda numbered: numbered[1][0].device):
            if device.type != "cuda":
                for i, (span, _) in numbered_spans:
                    yield from ((i, chunk) for chunk in self._from_host(span.host()))
            else:
                with torch.cuda.device(device.index):
                    yield from self._from_device(
                        device, [(i, s.raw() if raw is None else raw) for i, (s, raw) in numbered_spans]
                    )

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
    """Consecutive bytes of a span on a GPU, and the hosts that receive them, SLOT bytes each.

    `slots` is True if the hosts are slots from the pool.
    """

    span: int
    source: torch.Tensor
    hosts: list[torch.Tensor]
    slots: bool


class _Room:
    """Memory for _TOGETHER slots on the current GPU.

    `filled` marks that the latest bytes are in the room, `arrived` that they were copied to the host. The events are
    created once, because creating one takes the host longer than a copy.
    """

    def __init__(self) -> None:
        self.bytes = torch.empty(_TOGETHER * SLOT, dtype=torch.uint8, device="cuda")
        self.slots = torch.split(self.bytes, SLOT)
        self.filled, self.arrived = torch.cuda.Event(), torch.cuda.Event()  # type: ignore[no-untyped-call]


class _Outlet:
    """The route from the current GPU to the host: rooms, used in turn, and a stream for the copies from them.

    A room is reused once its copy has arrived; the GPU waits for that, not the host. If no memory is free there are no
    rooms, and the program's kernels wait for the copies.
    """

    def __init__(self) -> None:
        free, _ = torch.cuda.mem_get_info()
        self._rooms = [_Room() for _ in range(min(_ROOMS, free // (_SHARE * _TOGETHER * SLOT)))]
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def copy(self, parts: list[_Part]) -> torch.cuda.Event:
        """Start to copy bytes, as they are now on the device's current stream, to at most _TOGETHER slots.

        Return an event that fires when they have arrived. It may fire later, after the next copy through the same room.
        """
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
        room.filled.record(stream)
        torch.cuda.set_stream(self._stream)  # `with torch.cuda.stream()` takes the host as long as two copies
        try:
            self._stream.wait_event(room.filled)
            for part, slots in zip(parts, places, strict=True):
                _fill(part, slots)
            room.arrived.record(self._stream)
        finally:
            torch.cuda.set_stream(stream)
        return room.arrived


def _fill(part: _Part, pieces: Sequence[torch.Tensor]) -> None:
    """Start to copy a part to its hosts, SLOT bytes each."""
    left = part.source.numel()
    for host, piece in zip(part.hosts, pieces, strict=True):
        if left < SLOT:
            host, piece = host[:left], piece[:left]  # noqa: PLW2901 - the last piece may be shorter than a slot
        host.copy_(piece, non_blocking=True)
        left -= SLOT


def on_cuda() -> bool:
    """Return True if the program uses a GPU."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
