"""The layout of a `NAME.trace/` directory: file names, version, lines with checksums, durable writes.

manifest.json            versions, settings, totals, the other files and their sizes; its state turns "complete" last
signatures.json          every signature with its counts
calls-00000.jsonl        one stored call a line, each followed by the CRC-32 of its text
dataflow.json            which values the calls of a step read, make and write, where that was recorded
blobs-00000.safetensors  spans of bytes under their blake3, U8, zero-padded to 64 bytes
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any

from traces.errors import TraceError

FORMAT = 2
MANIFEST = "manifest.json"
SIGNATURES = "signatures.json"
CALLS = "calls-00000.jsonl"
DATAFLOW = "dataflow.json"
SHARD = re.compile(r"blobs-\d{5}\.safetensors")
BLOB_KEY = re.compile(r"[0-9a-f]{64}")
PADDING = 64  # bytes; every blob starts and ends on such a boundary of its file
LEVELS = ("full", "rows", "seeded", "stats", "meta")  # of a call's contents, from everything to nothing
MAX_LINE = 1 << 24  # bytes of one stored call without its tensors
MAX_JSON = 1 << 28  # bytes of manifest.json or signatures.json
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def shard_name(index: int) -> str:
    """File name of blob shard `index`."""
    return f"blobs-{index:05}.safetensors"


def padded(nbytes: int) -> int:
    """Length of a blob of `nbytes` bytes in its shard."""
    return -(-nbytes // PADDING) * PADDING


def jsonable(value: Any) -> Any:
    """Return a value as `json` takes it; a dataclass as the fields and properties that its `JSON` lists, or all fields.

    Sets are sorted, and keys and paths become texts.
    """
    if is_dataclass(value):
        names = getattr(value, "JSON", None) or [field.name for field in fields(value)]
        return {name: jsonable(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Set):
        return [jsonable(each) for each in (sorted(value) if isinstance(value, Set) else value)]
    return str(value) if isinstance(value, PurePath) else value


def to_json(value: Any) -> str:
    """Compact JSON; NaN and infinity are refused, floats are written in hexadecimal by the value codec."""
    return _ENCODER.encode(value)


def parse_json(text: bytes, where: str) -> Any:
    """JSON, or a TraceError that names `where`."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{where}: not JSON ({str(error)[:120]})") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)[:80]!r} occurs twice")
    return found


def encode_line(value: Any) -> bytes:
    """One line of a calls file."""
    text = to_json(value).encode()
    return text + f" {zlib.crc32(text):08x}\n".encode()


def decode_line(line: bytes, where: str) -> Any:
    """The value of one line; raises TraceError if it is torn or altered."""
    text, _, checksum = line.rstrip(b"\n").rpartition(b" ")
    if not line.endswith(b"\n") or checksum != f"{zlib.crc32(text):08x}".encode():
        raise TraceError(f"{where}: the checksum does not match; the line is torn or altered")
    return parse_json(text, where)


def write_durably(path: Path, chunks: Iterable[bytes]) -> int:
    """Write a file so that after a crash it is whole or absent; returns its length in bytes."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        size = file.tell()
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path.parent)
    return size


def sync_directory(path: Path) -> None:
    """Make renames inside `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shard_chunks(blobs: dict[str, bytes]) -> Iterable[bytes]:
    """A safetensors file of 1-D U8 tensors: header length, header padded with spaces, the data."""
    yield from shard_header({key: len(data) for key, data in blobs.items()})
    for data in blobs.values():
        yield data
        yield bytes(padded(len(data)) - len(data))


def shard_header(sizes: dict[str, int]) -> Iterable[bytes]:
    """What comes before the data of a shard. sizes: lengths of its blobs in bytes, in the order of the data."""
    header, offset = {}, 0
    for key, nbytes in sizes.items():
        end = offset + padded(nbytes)
        header[key] = {"dtype": "U8", "shape": [end - offset], "data_offsets": [offset, end]}
        offset = end
    text = to_json(header).encode()
    text += b" " * (-(8 + len(text)) % PADDING)
    yield struct.pack("<Q", len(text)) + text


def level(spec: Any) -> str:
    """How much of a group's contents a content spec keeps: one of LEVELS."""
    return str(spec["level"]) if isinstance(spec, dict) else "full"
