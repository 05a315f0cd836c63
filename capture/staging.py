"""Memory between the program and the thread that writes: a bounded number of slots, pinned where CUDA is in use.

What lies on a GPU is first copied there, in stream order and so before the program can change it, and from that copy to
the host on a stream of its own: the program's next kernels, and the hashes of the next call, do not wait for the bus.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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

    def chunks(self, span: Span, raw: torch.Tensor | None = None) -> Iterator[Chunk]:
        """Copies of a span's bytes, piece by piece, as they are now on the current stream of its device.

        raw: the bytes as a tensor, if there is one already.
        """
        if span.device.type == "cpu":
            yield from self._from_host(span.host())
        else:
            yield from self._from_device(span.raw() if raw is None else raw)

    def _from_host(self, data: memoryview) -> Iterator[Chunk]:
        for start in range(0, len(data), SLOT):
            piece = np.frombuffer(data[start : start + SLOT], np.uint8)
            slot = self.take()
            np.copyto(slot.numpy()[: len(piece)], piece)
            yield Chunk(slot.numpy().data[: len(piece)], slot)

    def _from_device(self, raw: torch.Tensor) -> Iterator[Chunk]:
        with torch.cuda.device(raw.device):
            if raw.numel() <= SMALL:
                host = torch.empty(raw.numel(), dtype=torch.uint8, pin_memory=True)
                yield Chunk(host.numpy().data, ready=_copy([raw], [host]))
                return
            outlet = self._outlets.get(raw.device)
            if outlet is None:
                outlet = self._outlets[raw.device] = _Outlet(raw.device)
            many = SLOT * min(_TOGETHER, self._slots)
            for part in torch.split(raw, many):
                pieces = torch.split(part, SLOT)
                slots = [self.take() for _ in pieces]
                hosts = [slot[: len(piece)] for slot, piece in zip(slots, pieces, strict=True)]
                ready = outlet.copy(part, hosts)
                yield from (Chunk(host.numpy().data, slot, ready) for host, slot in zip(hosts, slots, strict=True))


class _Outlet:
    """The way from one GPU to the host: rooms, used in turn, and a stream for the copies out of them.

    A room is used again when its copy has arrived, for which the GPU waits and not the host. Without memory to spare
    there are no rooms, and the program's kernels wait for the copies.
    """

    def __init__(self, device: torch.device) -> None:
        free, _ = torch.cuda.mem_get_info(device)
        number = _ROOMS if free >= _SPARE else 0
        self._rooms = [torch.empty(_TOGETHER * SLOT, dtype=torch.uint8, device=device) for _ in range(number)]
        self._arrived: list[torch.cuda.Event | None] = [None] * number
        self._next = 0
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def copy(self, source: torch.Tensor, targets: Sequence[torch.Tensor]) -> torch.cuda.Event:
        """Begin to copy bytes, as they are now on the device's current stream, to up to _TOGETHER slots; when they have
        arrived."""
        if not self._rooms:
            return _copy(torch.split(source, SLOT), targets)
        number, self._next = self._next, (self._next + 1) % len(self._rooms)
        before = self._arrived[number]
        if before is not None:
            before.wait()
        room = self._rooms[number][: len(source)]
        there = _copy([source], [room])
        with torch.cuda.stream(self._stream):
            there.wait()
            arrived = self._arrived[number] = _copy(torch.split(room, SLOT), targets)
        return arrived


def _copy(sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> torch.cuda.Event:
    """Begin to copy bytes in the order of the device's current stream."""
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source, non_blocking=True)
    ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
    ready.record()
    return ready


def on_cuda() -> bool:
    """Whether the program uses a GPU."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
