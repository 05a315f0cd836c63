"""Frames between the judge and its children: a JSON header and raw buffers over a socket. Nothing is ever unpickled."""

from __future__ import annotations

import json
import socket
import struct
import time
from itertools import accumulate
from typing import Any

from traces.values import Bytes, Packed

_LENGTH = struct.Struct("<I")
MAX_HEADER = 16 << 20  # bytes of JSON; parsed they take up to 20 times as much
_FIRST = 1 << 20  # bytes of a buffer that are taken before any has arrived
_TOGETHER = 1 << 16  # bytes that are sent or received in one system call, which costs more than a copy
MAX_BUFFERS = 8 << 30  # bytes of all buffers of one frame


class WireError(Exception):
    """The peer closed, stalled past the deadline (`timeout`), or sent what is no frame."""

    def __init__(self, message: str, timeout: bool = False) -> None:
        super().__init__(message)
        self.timeout = timeout


def send(sock: socket.socket, header: dict[str, Any], buffers: list[Bytes] | None = None) -> None:
    """Send one frame. Raises WireError if the peer is gone."""
    buffers = buffers or []
    text = json.dumps({**header, "buffers": [len(b) for b in buffers]}).encode()
    parts = [_LENGTH.pack(len(text)), text, *buffers]
    if sum(map(len, parts)) <= _TOGETHER:
        parts = [b"".join(parts)]
    try:
        for part in parts:
            sock.sendall(part)
    except OSError as error:
        raise WireError(f"peer is gone: {error}", timeout=isinstance(error, TimeoutError)) from error


def receive(
    sock: socket.socket, deadline: float | None = None, most: int = MAX_BUFFERS
) -> tuple[dict[str, Any], list[Bytes]]:
    """Receive one frame, its buffers at `most` so many bytes, before `deadline` (time.monotonic()).

    Sizes are checked before anything is allocated. Raises WireError.
    """
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size, deadline))
    if length > MAX_HEADER:
        raise WireError(f"frame header of {length} bytes")
    try:
        header = json.loads(bytes(_exactly(sock, length, deadline)))
        sizes = header.pop("buffers")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WireError(f"not a frame: {error}") from error
    if not isinstance(sizes, list) or not all(isinstance(n, int) and n >= 0 for n in sizes) or sum(sizes) > most:
        raise WireError("frame with impossible buffer sizes")
    if sum(sizes) > _TOGETHER:
        return header, [_exactly(sock, n, deadline) for n in sizes]
    data, ends = _exactly(sock, sum(sizes), deadline), list(accumulate(sizes))
    return header, [data[end - n : end] for n, end in zip(sizes, ends, strict=True)]


def _exactly(sock: socket.socket, size: int, deadline: float | None) -> bytearray:
    """`size` bytes; memory is taken as they arrive, so that a peer cannot have it taken by announcing them."""
    data, filled = bytearray(min(size, _FIRST)), 0
    while filled < size:
        if filled == len(data):
            data.extend(bytes(min(size, 2 * filled) - filled))
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WireError("deadline passed", timeout=True)
            sock.settimeout(left)
        try:
            count = sock.recv_into(memoryview(data)[filled:])
        except TimeoutError as error:
            raise WireError("deadline passed", timeout=True) from error
        except OSError as error:
            raise WireError(f"peer is gone: {error}") from error
        if not count:
            raise WireError("peer closed the connection")
        filled += count
    return data


def send_packed(sock: socket.socket, header: dict[str, Any], packed: Packed) -> None:
    """Send a frame whose buffers are the known groups of `packed`."""
    send(sock, {**header, "packed": packed.header()}, [d for d in packed.data if d is not None])


def packed_of(header: dict[str, Any], buffers: list[Bytes], where: str) -> Packed:
    """The Packed of a frame that `send_packed` sent. Raises TraceError if it does not hold together."""
    content = header.get("packed")
    spans = iter(buffers)
    groups = content.get("groups", []) if isinstance(content, dict) else []
    data = [next(spans, None) if isinstance(g, dict) and g.get("known", True) else None for g in groups]
    return Packed.from_header(content, data, where)
