"""Memory between the program and the thread that writes: a bounded number of slots, pinned where CUDA is in use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from traces.span import Span

SLOT = 4 << 20  # bytes
SMALL = 64 << 10  # bytes; what is shorter is copied without a slot
_SLAB = 8  # slots that are allocated at once


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

    def chunks(self, span: Span) -> Iterator[Chunk]:
        """Copies of a span's bytes, piece by piece, as they are now on the current stream of its device."""
        if span.nbytes <= SMALL:
            yield _small(span)
        elif span.device.type == "cpu":
            yield from self._from_host(span.host())
        else:
            yield from self._from_device(span)

    def _from_host(self, data: memoryview) -> Iterator[Chunk]:
        for start in range(0, len(data), SLOT):
            piece = np.frombuffer(data[start : start + SLOT], np.uint8)
            slot = self.take()
            np.copyto(slot.numpy()[: len(piece)], piece)
            yield Chunk(slot.numpy().data[: len(piece)], slot)

    def _from_device(self, span: Span) -> Iterator[Chunk]:
        raw = span.raw()
        with torch.cuda.device(span.device):
            for piece in torch.split(raw, SLOT):
                slot = self.take()
                yield Chunk(slot.numpy().data[: len(piece)], slot, _copy(piece, slot[: len(piece)]))


def _small(span: Span) -> Chunk:
    if span.device.type == "cpu":
        return Chunk(memoryview(bytes(span.host())))
    with torch.cuda.device(span.device):
        host = torch.empty(span.nbytes, dtype=torch.uint8, pin_memory=True)
        return Chunk(host.numpy().data, ready=_copy(span.raw(), host))


def _copy(source: torch.Tensor, target: torch.Tensor) -> torch.cuda.Event:
    """Begin to copy bytes from a device, in the order of its current stream."""
    target.copy_(source, non_blocking=True)
    ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
    ready.record()
    return ready


def on_cuda() -> bool:
    """Whether the program uses a GPU."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
