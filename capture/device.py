"""What a GPU computes of contents where they lie, so that only new ones are copied to the host."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock, local
from typing import TypeAlias

import torch

_MEASURED = frozenset(
    {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
    | {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128}
)

Hash: TypeAlias = tuple[int, int, int, int]  # length, word size and two 64-bit sums


@cache
def compiles() -> bool:
    """Whether Triton compiles kernels in this process. With TRITON_INTERPRET=1 it would run them on the host instead,
    an element at a time: contents are then copied there whole, and looked at by other means."""
    import triton.language

    return type(triton.language.softmax).__name__ != "InterpretedFunction"  # what was decided when it was imported


def begin_copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Begin to copy a few bytes that are contiguous on the current GPU to as many in pinned memory.

    By a kernel: a copy of PyTorch's, however short, would wait for what is on the bus before it, and the program's next
    kernels for the copy.
    """
    if compiles():
        from capture.device_kernels import copy_into

        copy_into(target, source)
    else:
        target.copy_(source, non_blocking=True)


class _Board:
    """Rows of zeros on a GPU, for sums of kernels of one stream; made together, so that none has to be."""

    def __init__(self, device: torch.device, width: int, dtype: torch.dtype) -> None:
        self.sums = torch.zeros((_ROWS, width), dtype=dtype, device=device)
        self.used = 0
        self._stream = torch.cuda.current_stream(device)
        self.stream: int = self._stream.cuda_stream
        self._known: list[list[float]] = []
        self._lock = Lock()
        self._host: torch.Tensor | None = None

    @cached_property
    def room(self) -> torch.Tensor:
        """For `moments_into`."""
        from capture.device_kernels import ROOM

        return torch.zeros(ROOM, dtype=torch.float64, device=self.sums.device)

    def rows(self, first: int, last: int) -> list[tuple[int, int]]:
        """What stands in rows for which kernels were launched. Waits for these."""
        if self._host is None:
            self._host = torch.empty(self.sums.shape, dtype=self.sums.dtype, pin_memory=True)
        begin_copy(self._host[first:last], self.sums[first:last])
        self._stream.synchronize()
        return [(a, b) for a, b in self._host[first:last].tolist()]

    def row(self, number: int) -> list[float]:
        """What stands in a row that a kernel was launched for, from whatever thread: all that are launched by then are
        read together, in stream order, when one that is not known is asked for."""
        with self._lock:
            if number >= len(self._known):
                with torch.cuda.stream(self._stream):
                    self._known += self.sums[len(self._known) : self.used].tolist()
            return self._known[number]


_ROWS = 1024


class _Local(local):
    """Of a thread."""

    def __init__(self) -> None:
        self.boards: dict[tuple[torch.device, torch.dtype], _Board] = {}


_LOCAL = _Local()


def _board(device: torch.device, width: int, dtype: torch.dtype, rows: int) -> _Board:
    """One of the current stream of a device, with so many rows that are not used."""
    board, stream = _LOCAL.boards.get((device, dtype)), torch._C._cuda_getCurrentRawStream(device.index)
    if board is None or board.used + rows > _ROWS or board.stream != stream:
        board = _LOCAL.boards[device, dtype] = _Board(device, width, dtype)
    return board


def hashes(contents: list[torch.Tensor]) -> list[Hash]:
    """Of uint8 tensors that are contiguous. Waits for the device, once for all of them."""
    if not contents:
        return []
    from capture.device_kernels import hash_into

    by_device: dict[torch.device, list[int]] = defaultdict(list)
    for i, raw in enumerate(contents):
        by_device[raw.device].append(i)
    found: dict[int, Hash] = {}
    for device, members in by_device.items():
        with torch.cuda.device(device.index):  # found faster by its number
            for start in range(0, len(members), _ROWS):
                some = members[start : start + _ROWS]
                board = _board(device, 2, torch.int64, len(some))
                first = board.used
                sizes = [hash_into(board.sums, first + k, contents[i]) for k, i in enumerate(some)]
                board.used += len(some)
                for i, size, sums in zip(some, sizes, board.rows(first, board.used), strict=True):
                    found[i] = (contents[i].numel(), size, *sums)
    return [found[i] for i in range(len(contents))]


@dataclass(frozen=True, slots=True)
class DeviceMoments:
    """Moments of `count` elements, as `traces.fingerprint.moments` defines them, that a device is still computing."""

    count: int
    board: _Board
    row: int

    def wait(self) -> list[float]:
        """Mean, mean |x| and max |x|."""
        return from_sums(self.count, self.board.row(self.row))


def start_moments(t: torch.Tensor) -> DeviceMoments | None:
    """Begin to compute the moments of a tensor on a GPU; None of what has none, or of a rare dtype, or if it cannot."""
    if not t.is_cuda or t.dtype not in _MEASURED or not t.numel() or not compiles():
        return None
    from capture.device_kernels import moments_into

    with torch.no_grad(), torch.cuda.device(t.get_device()):
        flat = t.detach().resolve_conj().resolve_neg()
        flat = (torch.view_as_real(flat) if flat.is_complex() else flat).contiguous()
        board = _board(t.device, 3, torch.float64, 1)
        row = board.used
        moments_into(board.sums, row, flat, board.room)
        board.used += 1
    return DeviceMoments(flat.numel(), board, row)


def from_sums(count: int, sums: list[float]) -> list[float]:
    """The moments of which `moments_into` gave the sums."""
    total, absolute, greatest = sums
    return [total / count, absolute / count, math.nan if math.isnan(absolute) else greatest]
