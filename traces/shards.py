"""Blob reader: byte spans in safetensors files, each with its blake3 as key."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from traces import format as fmt
from traces.errors import TraceError


class Shards:
    """The shards of a trace, all opened at first use. Safe to use from several threads."""

    def __init__(self, root: Path, names: list[str], damage: list[str] | None) -> None:
        """Remember the files without opening them.

        Args:
            root: Directory of the trace.
            names: Names of the shard files.
            damage: List that receives a line for each unreadable shard; None to raise TraceError instead.
        """
        self._root = root
        self._names = names
        self._damage = damage
        self._open: dict[str, Any] | None = None
        self._home: dict[str, str] = {}  # shard name by blob key
        self._lock = threading.Lock()

    def keys(self) -> set[str]:
        """Return the keys of all blobs."""
        self._shards()
        return set(self._home)

    def blob(self, key: Any, nbytes: int, where: str) -> bytes:
        """Return the bytes stored under a key, after checking their hash.

        Raise a TraceError that names `where` if they are missing or altered.
        """
        if key == "" and nbytes == 0:
            return b""
        if not isinstance(key, str) or not fmt.BLOB_KEY.fullmatch(key):
            raise TraceError(f"{where}: {str(key)[:80]!r} is not the key of a blob")
        shards = self._shards()
        if key not in self._home:
            raise TraceError(f"{where}: blob {key} is in none of the {len(shards)} shards of {self._root}")
        name = self._home[key]
        piece = shards[name].get_slice(key)
        if piece.get_dtype() != "U8" or piece.get_shape() != [fmt.padded(nbytes)]:
            raise TraceError(f"{self._root / name}: blob {key} is {piece.get_shape()}, {where} says {nbytes} bytes")
        data: bytes = shards[name].get_tensor(key).data[:nbytes].tobytes()
        if blake3(data).hexdigest() != key:
            raise TraceError(f"{self._root / name}: blob {key} was altered; its hash does not match")
        return data

    def check(self) -> int:
        """Read every blob, referenced or not, and return their number. Raise TraceError if one was altered."""
        return sum(1 for _ in self.spans())

    def spans(self) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """Yield key and bytes, including padding, for every blob. Raise TraceError if one was altered."""
        for name, shard in self._shards().items():
            for key in shard.keys():  # noqa: SIM118
                flat = shard.get_slice(key).get_dtype() == "U8" and len(shard.get_slice(key).get_shape()) == 1
                data = shard.get_tensor(key)
                if not flat or not _matches(data.data, key):
                    raise TraceError(f"{self._root / name}: blob {key[:80]} was altered; its hash does not match")
                yield key, data

    def _shards(self) -> dict[str, Any]:
        with self._lock:
            if self._open is None:
                self._open = self._opened()
                self._home = {key: name for name, shard in self._open.items() for key in shard.keys()}  # noqa: SIM118
            return self._open

    def _opened(self) -> dict[str, Any]:
        opened: dict[str, Any] = {}
        for name in sorted(self._names):
            try:
                opened[name] = _open_shard(self._root / name)
            except TraceError as error:
                if self._damage is None:
                    raise
                self._damage.append(str(error))
        return opened


def _open_shard(path: Path) -> Any:
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = file.read(min(length, fmt.MAX_JSON))
        shard = safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise TraceError(f"{path}: not a readable safetensors file ({str(error)[:120]})") from error
    fmt.parse_json(header, str(path))  # rejects a repeated key; safetensors would silently use the last one
    return shard


def _matches(data: memoryview, key: str) -> bool:
    """Return True if the data is the blob with this key, followed by fewer than 64 zero bytes.

    The blob may itself end in zeros, so every possible length is tried.
    """
    start = max(len(data) - fmt.PADDING, 0)
    head = blake3(data[:start])
    for end in range(len(data), start, -1):
        digest = head.copy()
        digest.update(data[start:end])
        if digest.hexdigest() == key:
            return True
        if data[end - 1]:
            return False
    return False
