"""Layout of a `NAME.trace/` directory: file names, version, lines with checksums, durable writes.

manifest.json            versions, settings, totals, the other files and their sizes; its state turns "complete" last
signatures.json          every signature with its counts
calls-00000.jsonl        one stored call on each line, followed by the CRC-32 of its text
dataflow.json            optional: values that each call in a step reads, produces and writes
blobs-00000.safetensors  byte spans, with their blake3 as key, dtype U8, zero-padded to 64 bytes
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
PADDING = 64  # bytes; every blob starts and ends on such a boundary in its file
LEVELS = ("full", "rows", "seeded", "stats", "meta")  # levels of a call's contents, from everything to nothing
MAX_LINE = 1 << 24  # bytes in the line of one stored call
MAX_JSON = 1 << 28  # bytes of manifest.json or signatures.json
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def shard_name(index: int) -> str:
    """Return the file name of blob shard `index`."""
    return f"blobs-{index:05}.safetensors"


def padded(nbytes: int) -> int:
    """Return the padded length, in its shard, for a blob with `nbytes` bytes."""
    return -(-nbytes // PADDING) * PADDING


def jsonable(value: Any) -> Any:
    """Return a value in a form that `json` accepts.

    A dataclass becomes an object with the fields and properties that its `JSON` lists, or with all fields. Sets are
    sorted. Keys and paths become strings.
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
    """Encode compact JSON; NaN and infinity are rejected, because the value codec writes floats in hexadecimal."""
    return _ENCODER.encode(value)


def parse_json(text: bytes, where: str) -> Any:
    """Parse JSON. Raise a TraceError that names `where` if it is invalid or repeats a key."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{where}: not JSON ({str(error)[:120]})") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)[:80]!r} occurs twice")
    return result


def encode_line(value: Any) -> bytes:
    """Encode one line of a calls file, with its checksum."""
    text = to_json(value).encode()
    return text + f" {zlib.crc32(text):08x}\n".encode()


def decode_line(line: bytes, where: str) -> Any:
    """Return the value of one line. Raise TraceError if the line is torn or altered."""
    text, _, checksum = line.rstrip(b"\n").rpartition(b" ")
    if not line.endswith(b"\n") or checksum != f"{zlib.crc32(text):08x}".encode():
        raise TraceError(f"{where}: the checksum does not match; the line is torn or altered")
    return parse_json(text, where)


def write_durably(path: Path, chunks: Iterable[bytes]) -> int:
    """Write a file so that after a crash it is complete or absent, and return its length in bytes."""
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
    """Yield a safetensors file of 1-D U8 tensors: header length, header padded with spaces, data."""
    yield from shard_header({key: len(data) for key, data in blobs.items()})
    for data in blobs.values():
        yield data
        yield bytes(padded(len(data)) - len(data))


def shard_header(sizes: dict[str, int]) -> Iterable[bytes]:
    """Yield the part of a shard that precedes the data.

    `sizes` gives the length of each blob in bytes, in data order.
    """
    header, offset = {}, 0
    for key, nbytes in sizes.items():
        end = offset + padded(nbytes)
        header[key] = {"dtype": "U8", "shape": [end - offset], "data_offsets": [offset, end]}
        offset = end
    text = to_json(header).encode()
    text += b" " * (-(8 + len(text)) % PADDING)
    yield struct.pack("<Q", len(text)) + text


def level(spec: Any) -> str:
    """Return the level, one of LEVELS, that a content spec keeps of its group."""
    return str(spec["level"]) if isinstance(spec, dict) else "full"
