"""Frames between the judge and its children: a JSON header and raw buffers over a socket.

Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from itertools import accumulate
from typing import Any

from traces.values import Bytes, Packed

_LENGTH = struct.Struct("<I")
MAX_HEADER = 16 << 20  # bytes of JSON; the parsed objects take up to 20 times as much memory
_FIRST = 1 << 20  # bytes allocated for a buffer before any data has arrived
_TOGETHER = 1 << 16  # up to this many bytes travel in one system call, because a call costs more than a copy
MAX_BUFFERS = 8 << 30  # bytes in all buffers of one frame


class WireError(Exception):
    """Error raised if the peer closed, missed the deadline (`timeout`), or sent an invalid frame."""

    def __init__(self, message: str, timeout: bool = False) -> None:
        super().__init__(message)
        self.timeout = timeout


def send(sock: socket.socket, header: dict[str, Any], buffers: list[Bytes] | None = None) -> None:
    """Send one frame; raise WireError if the peer is gone."""
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
    sock: socket.socket, deadline: float | None = None, max_bytes: int = MAX_BUFFERS
) -> tuple[dict[str, Any], list[Bytes]]:
    """Receive one frame and return its header and its buffers.

    Sizes are checked before anything is allocated.

    Args:
        sock: Socket to the peer.
        deadline: Time limit, as a value of time.monotonic().
        max_bytes: Maximum bytes in all buffers.

    Raises:
        WireError: The peer is gone, the deadline passed, or the frame is invalid.
    """
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size, deadline))
    if length > MAX_HEADER:
        raise WireError(f"frame header of {length} bytes")
    try:
        header = json.loads(bytes(_exactly(sock, length, deadline)))
        sizes = header.pop("buffers")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WireError(f"not a frame: {error}") from error
    if not isinstance(sizes, list) or not all(isinstance(n, int) and n >= 0 for n in sizes) or sum(sizes) > max_bytes:
        raise WireError("frame with impossible buffer sizes")
    if sum(sizes) > _TOGETHER:
        return header, [_exactly(sock, n, deadline) for n in sizes]
    data, ends = _exactly(sock, sum(sizes), deadline), list(accumulate(sizes))
    return header, [data[end - n : end] for n, end in zip(sizes, ends, strict=True)]


def _exactly(sock: socket.socket, size: int, deadline: float | None) -> bytearray:
    """Receive `size` bytes.

    Memory is allocated as data arrives, so that a peer cannot exhaust it by announcing a large size.
    """
    data, filled = bytearray(min(size, _FIRST)), 0
    while filled < size:
        if filled == len(data):
            data.extend(bytes(min(size, 2 * filled) - filled))
        if deadline is not None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise WireError("deadline passed", timeout=True)
            sock.settimeout(remaining)
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
    """Send a frame with the groups of `packed` whose bytes are known as its buffers."""
    send(sock, {**header, "packed": packed.header()}, [d for d in packed.data if d is not None])


def packed_of(header: dict[str, Any], buffers: list[Bytes], where: str) -> Packed:
    """Decode the Packed value in a frame from `send_packed`; raise TraceError if it is inconsistent."""
    content = header.get("packed")
    spans = iter(buffers)
    groups = content.get("groups", []) if isinstance(content, dict) else []
    data = [next(spans, None) if isinstance(g, dict) and g.get("known", True) else None for g in groups]
    return Packed.from_header(content, data, where)
