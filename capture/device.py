"""Hashes and moments computed on a GPU, so that only new contents are copied to the host."""

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
    """Return True if Triton compiles kernels in this process.

    With TRITON_INTERPRET=1 it would run them on the host, one element at a time. Contents are then copied to the host
    completely and processed there.
    """
    import triton.language

    # Triton decided at import; the environment variable may have changed since.
    return type(triton.language.softmax).__name__ != "InterpretedFunction"


def begin_copy(target: torch.Tensor, source: torch.Tensor) -> None:
    """Start to copy a few bytes, contiguous on the current GPU, to pinned memory with the same size.

    A kernel does this. A PyTorch copy, however short, would wait for earlier transfers on the bus, and the program's
    next kernels would wait for the copy.
    """
    if compiles():
        from capture.device_kernels import copy_into

        copy_into(target, source)
    else:
        target.copy_(source, non_blocking=True)


class _Board:
    """Rows of zeros on a GPU that receive the sums of kernels on one stream.

    The rows are allocated together, so that no single kernel needs an allocation.
    """

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
        """Return the scratch memory for `moments_into`."""
        from capture.device_kernels import ROOM

        return torch.zeros(ROOM, dtype=torch.float64, device=self.sums.device)

    def rows(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return rows whose kernels were launched, after waiting for these kernels."""
        if self._host is None:
            self._host = torch.empty(self.sums.shape, dtype=self.sums.dtype, pin_memory=True)
        begin_copy(self._host[first:last], self.sums[first:last])
        self._stream.synchronize()
        return [(a, b) for a, b in self._host[first:last].tolist()]

    def row(self, number: int) -> list[float]:
        """Return one row whose kernel was launched; safe to call from any thread.

        If the row is not on the host yet, all rows launched so far are read together, in stream order.
        """
        with self._lock:
            if number >= len(self._known):
                with torch.cuda.stream(self._stream):
                    self._known += self.sums[len(self._known) : self.used].tolist()
            return self._known[number]


_ROWS = 1024


class _Local(local):
    """State of one thread."""

    def __init__(self) -> None:
        self.boards: dict[tuple[torch.device, torch.dtype], _Board] = {}


_LOCAL = _Local()


def _board(device: torch.device, width: int, dtype: torch.dtype, rows: int) -> _Board:
    """Return a board for the current stream of a device, with `rows` unused rows."""
    board, stream = _LOCAL.boards.get((device, dtype)), torch._C._cuda_getCurrentRawStream(device.index)
    if board is None or board.used + rows > _ROWS or board.stream != stream:
        board = _LOCAL.boards[device, dtype] = _Board(device, width, dtype)
    return board


def hashes(contents: list[torch.Tensor]) -> list[Hash]:
    """Return hashes of contiguous uint8 tensors, waiting for each device once."""
    if not contents:
        return []
    from capture.device_kernels import hash_into

    by_device: dict[torch.device, list[int]] = defaultdict(list)
    for i, raw in enumerate(contents):
        by_device[raw.device].append(i)
    results: dict[int, Hash] = {}
    for device, members in by_device.items():
        with torch.cuda.device(device.index):  # passing the index is faster than passing the device
            for start in range(0, len(members), _ROWS):
                batch = members[start : start + _ROWS]
                board = _board(device, 2, torch.int64, len(batch))
                first = board.used
                sizes = [hash_into(board.sums, first + k, contents[i]) for k, i in enumerate(batch)]
                board.used += len(batch)
                for i, size, sums in zip(batch, sizes, board.rows(first, board.used), strict=True):
                    results[i] = (contents[i].numel(), size, *sums)
    return [results[i] for i in range(len(contents))]


@dataclass(frozen=True, slots=True)
class DeviceMoments:
    """Moments that a device is still computing, as `traces.fingerprint.moments` defines them.

    Attributes:
        count: Number of elements.
        board: Receives the sums.
        row: Row on the board.
    """

    count: int
    board: _Board
    row: int

    def wait(self) -> list[float]:
        """Return mean, mean |x| and max |x|."""
        return from_sums(self.count, self.board.row(self.row))


def start_moments(t: torch.Tensor) -> DeviceMoments | None:
    """Start to compute the moments of a GPU tensor.

    Return None for a CPU or empty tensor, a rare dtype, or if Triton does not compile.
    """
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
    """Return the moments for the sums that `moments_into` computed."""
    total, absolute, greatest = sums
    return [total / count, absolute / count, math.nan if math.isnan(absolute) else greatest]
