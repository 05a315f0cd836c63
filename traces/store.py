"""Reading a trace. Whatever the directory holds, the answer is a value or a TraceError that names file and field."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3
from safetensors import SafetensorError, safe_open

from traces import format as fmt
from traces.errors import TraceError

if TYPE_CHECKING:
    from traces.values import Packed


@dataclass(frozen=True)
class Signature:
    """Calls that are alike, and how often they occurred.

    key: 16 hexadecimal digits. arguments: shapes, strides, dtypes and scalars as text. phases: calls by phase. steps:
    runs of steps, as (first, last, calls in each). samples: ids of the stored calls.
    """

    key: str
    overload: str
    kind: str
    arguments: str
    calls: int
    phases: dict[str, int]
    steps: tuple[tuple[int, int, int], ...]
    samples: tuple[int, ...]


@dataclass(frozen=True)
class CallRecord:
    """One stored call, without its bytes.

    id: its number among the stored calls. seq: its number among all calls of the recording. module: dotted name of the
    innermost module, relative to the recorded model. header: the packed arguments with the keys of their bytes.
    results: fingerprints of the result ("return") and of each mutated argument. rng: state of the generator before the
    call, where the call is random. where: file and line, for messages.
    """

    id: int
    seq: int
    step: int
    phase: str
    module: str
    thread: int
    overload: str
    signature: str
    kind: str
    header: dict[str, Any]
    results: dict[str, Any]
    rng: dict[str, Any] | None
    where: str

    @property
    def nbytes(self) -> int:
        """Bytes of tensor contents that the call read, aliased ones counted once."""
        return sum(g["nbytes"] for g in self.header["groups"] if g.get("known", True))


_RECORD_TYPES = {
    **dict.fromkeys(("id", "seq", "step", "thread"), int),
    **dict.fromkeys(("phase", "module", "overload", "signature", "kind"), str),
    **dict.fromkeys(("header", "results"), dict),
}
_SIGNATURE_TYPES = {
    **dict.fromkeys(("overload", "kind", "arguments"), str),
    **dict.fromkeys(("samples", "steps"), list),
    "calls": int,
    "phases": dict,
}


class Trace:
    """A trace on disk. Open one with `Trace.open`.

    path: its directory. manifest: versions, settings, totals. complete: whether the recording finished.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.complete: bool = manifest["state"] == "complete"
        self.torn = False  # the last line of an incomplete trace was cut off
        self._signatures: dict[str, Signature] | None = None
        self._shards: dict[str, Any] = {}  # open shards by file name
        self._home: dict[str, str] = {}  # shard of each blob

    @classmethod
    def open(cls, path: str | os.PathLike[str], partial: bool = False) -> Trace:
        """Open a trace. partial: also one whose recording did not finish.

        Raises TraceError if there is none, if its format is unknown, or if a file is missing or of the wrong size.
        """
        root = Path(path)
        if not (root / fmt.MANIFEST).is_file():
            raise TraceError(f"{root}: no trace here (no {fmt.MANIFEST}); record one with: enable capture MODEL")
        trace = cls(root, _manifest(root))
        if trace.complete:
            trace._check_files()
        elif not partial:
            raise TraceError(f"{root}: the recording did not finish (state open); record it again with --force")
        return trace

    @property
    def signatures(self) -> dict[str, Signature]:
        """All signatures by key; of an unfinished trace, those of its stored calls, counted among these."""
        if self._signatures is None:
            path = self.path / fmt.SIGNATURES
            self._signatures = _read_signatures(path) if self.complete or path.is_file() else self._from_calls()
        return self._signatures

    def calls(self) -> Iterator[CallRecord]:
        """The stored calls in the order of recording."""
        path = self.path / fmt.CALLS
        try:
            with open(path, "rb") as file:
                for number, line in enumerate(iter(lambda: file.readline(fmt.MAX_LINE), b""), start=1):
                    where = f"{path}:{number}"
                    if not self.complete and not line.endswith(b"\n") and not file.read(1):
                        self.torn = True
                        return
                    yield _record(fmt.decode_line(line, where), where)
        except OSError as error:
            raise TraceError(f"{path}: cannot be read ({error.strerror})") from error

    def packed(self, record: CallRecord) -> Packed:
        """The arguments of a stored call with their bytes, each checked against its hash."""
        from traces.values import Packed

        header, where = record.header, record.where
        groups, blobs = header.get("groups"), header.get("blobs")
        if not isinstance(groups, list) or not isinstance(blobs, list) or len(groups) != len(blobs):
            raise TraceError(f"{where}: header.groups and header.blobs do not match")
        data = [
            None if key is None else self.blob(key, _nbytes(group, f"{where}: header.groups[{i}]"), where)
            for i, (group, key) in enumerate(zip(groups, blobs, strict=True))
        ]
        return Packed.from_header(header, list(data), f"{where}: header")

    def blob(self, key: Any, nbytes: int, where: str) -> bytes:
        """The bytes under a key, checked against it. `where` is named if they are missing or altered."""
        if key == "" and nbytes == 0:
            return b""
        if not isinstance(key, str) or not fmt.BLOB_KEY.fullmatch(key):
            raise TraceError(f"{where}: {str(key)[:80]!r} is not the key of a blob")
        name, shard = self._shard_of(key, where)
        piece = shard.get_slice(key)
        if piece.get_dtype() != "U8" or piece.get_shape() != [fmt.padded(nbytes)]:
            raise TraceError(f"{self.path / name}: blob {key} is {piece.get_shape()}, {where} says {nbytes} bytes")
        data: bytes = shard.get_tensor(key).data[:nbytes].tobytes()
        if blake3(data).hexdigest() != key:
            raise TraceError(f"{self.path / name}: blob {key} was altered; its hash does not match")
        return data

    def _shard_of(self, key: str, where: str) -> tuple[str, Any]:
        if not self._home:
            shards = {name: _open_shard(self.path / name) for name in sorted(self._shard_names())}
            self._shards = shards  # before _home: other threads read a blob as soon as they see its home
            self._home = {key: name for name, shard in shards.items() for key in shard.keys()}  # noqa: SIM118
        if key not in self._home:
            raise TraceError(f"{where}: blob {key} is in none of the {len(self._shards)} shards of {self.path}")
        return self._home[key], self._shards[self._home[key]]

    def _shard_names(self) -> list[str]:
        names = self.manifest["files"] if self.complete else [p.name for p in self.path.iterdir()]
        return [name for name in names if fmt.SHARD.fullmatch(name)]

    def _check_files(self) -> None:
        for name, size in self.manifest["files"].items():
            path = self.path / name
            if not path.is_file():
                raise TraceError(f"{path}: missing; {fmt.MANIFEST} lists it under files")
            if path.stat().st_size != size:
                raise TraceError(f"{path}: has {path.stat().st_size} bytes, {fmt.MANIFEST} says files.{name} = {size}")

    def _from_calls(self) -> dict[str, Signature]:
        records = list(self.calls())
        calls = Counter(r.signature for r in records)
        return {
            r.signature: Signature(
                key=r.signature,
                overload=r.overload,
                kind=r.kind,
                arguments="",
                calls=calls[r.signature],
                phases=dict(Counter(o.phase for o in records if o.signature == r.signature)),
                steps=(),
                samples=tuple(o.id for o in records if o.signature == r.signature),
            )
            for r in records
        }


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            text = file.read(fmt.MAX_JSON + 1)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror})") from error
    if len(text) > fmt.MAX_JSON:
        raise TraceError(f"{path}: over the limit of {fmt.MAX_JSON} bytes")
    value = fmt.parse_json(text, str(path))
    if not isinstance(value, dict):
        raise TraceError(f"{path}: holds {type(value).__name__}, expected an object")
    return value


def _manifest(root: Path) -> dict[str, Any]:
    path = root / fmt.MANIFEST
    manifest = _read_json(path)
    found = manifest.get("format")
    if found != fmt.FORMAT:
        raise TraceError(f"{root} is format {str(found)[:20]}, this toolkit reads {fmt.FORMAT}; upgrade enablekit")
    if manifest.get("state") not in ("open", "complete"):
        raise TraceError(f"{path}: state is {str(manifest.get('state'))[:80]!r}, expected 'open' or 'complete'")
    if manifest["state"] == "complete":
        _check_listing(manifest.get("files"), path)
    return manifest


def _check_listing(files: Any, path: Path) -> None:
    needed = {fmt.CALLS, fmt.SIGNATURES}
    if not isinstance(files, dict) or not needed <= files.keys():
        raise TraceError(f"{path}: files does not list {' and '.join(sorted(needed))}")
    for name, size in files.items():
        if name not in needed and not fmt.SHARD.fullmatch(name):
            raise TraceError(f"{path}: files lists {name[:80]!r}, which is not the name of a trace's file")
        if not isinstance(size, int):
            raise TraceError(f"{path}: files.{name} is {str(size)[:80]!r}, expected a number of bytes")


def _check_types(value: Any, types: dict[str, type], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(f"{where}: holds {type(value).__name__}, expected an object")
    for name, kind in types.items():
        found = value.get(name)
        if not isinstance(found, kind) or isinstance(found, bool):
            raise TraceError(f"{where}: {name} is {str(found)[:80]!r}, expected {kind.__name__}")
    return value


def _read_signatures(path: Path) -> dict[str, Signature]:
    return {key: _signature(key, value, f"{path}: {key[:80]}") for key, value in _read_json(path).items()}


def _signature(key: str, value: Any, where: str) -> Signature:
    found = _check_types(value, _SIGNATURE_TYPES, where)
    counts = [*found["phases"].values(), *found["samples"], *(n for run in found["steps"] for n in _run(run, where))]
    if not all(isinstance(n, int) for n in counts):
        raise TraceError(f"{where}: phases, steps or samples hold something that is not a count")
    return Signature(
        key=key,
        steps=tuple((first, last, calls) for first, last, calls in found["steps"]),
        samples=tuple(found["samples"]),
        **{name: found[name] for name in ("overload", "kind", "arguments", "calls", "phases")},
    )


def _run(run: Any, where: str) -> list[Any]:
    if not isinstance(run, list) or len(run) != 3:
        raise TraceError(f"{where}: steps holds {str(run)[:80]!r}, expected [first, last, calls]")
    return run


def _record(value: Any, where: str) -> CallRecord:
    found = _check_types(value, _RECORD_TYPES, where)
    if found.get("rng") is not None:
        _check_types(found["rng"], {"device": str, "blob": str, "nbytes": int}, f"{where}: rng")
    groups = found["header"].get("groups")
    for i, group in enumerate(groups if isinstance(groups, list) else [None]):
        _nbytes(group, f"{where}: header.groups[{i}]")
    known: dict[str, Any] = {f.name: found.get(f.name) for f in fields(CallRecord)}
    return CallRecord(**{**known, "where": where})


def _nbytes(group: Any, where: str) -> int:
    size: int = _check_types(group, {"nbytes": int}, where)["nbytes"]
    return size


def _open_shard(path: Path) -> Any:
    try:
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise TraceError(f"{path}: not a readable safetensors file ({str(error)[:120]})") from error
