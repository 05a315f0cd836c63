"""Trace writer.

A directory has one writer. Its files are readable at every moment, but the trace is marked complete only at the end.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from blake3 import blake3

from traces import format as fmt
from traces.counts import SignatureCount
from traces.errors import UserError

if TYPE_CHECKING:
    from traces.dataflow import Dataflow
    from traces.values import Bytes, Packed

SHARD_BYTES = 64 << 20  # bytes of blobs that are buffered in memory before they are written as one shard


@dataclass(frozen=True)
class CallSite:
    """The place of a call in the recording.

    Attributes:
        seq: Number among all calls, stored or not.
        step: Training step.
        phase: Phase, such as forward.
        module: Dotted module name.
        thread: 0 for the first recording thread, 1 for any other.
        grad: True if gradients were enabled.
    """

    seq: int
    step: int
    phase: str
    module: str
    thread: int = 0
    grad: bool = False


class TraceWriter:
    """Writer for one trace, into a directory that it creates with mode 0700.

    A forked process inherits the writer but not the directory: there `flush`, `close` and `abandon` do nothing.
    """

    def __init__(self, path: str | os.PathLike[str], info: dict[str, Any] | None = None, force: bool = False) -> None:
        """Create the directory and write an open manifest.

        Args:
            path: Directory of the trace. It must not exist, unless `force` is set.
            info: Entries for the manifest, such as the model and its settings.
            force: Replace an existing trace or empty directory; anything else is never replaced.

        Raises:
            UserError: If the directory exists or cannot be created.
        """
        self.path = Path(path)
        self._process = os.getpid()
        make_directory(self.path, force)
        self._signatures: dict[str, SignatureCount] = {}
        self._known: set[str] = set()  # keys of the blobs in all shards and in `_blobs`
        self._blobs: dict[str, bytes] = {}
        self._buffered = 0  # bytes in `_blobs`
        self._blob_shards: dict[str, tuple[str, int]] = {}  # shard and length of each blob that has its own shard
        self._amended: dict[int, dict[str, Any]] = {}  # content specs that replace written ones, by call and group
        self._levels: dict[int, str] = {}
        self._lines: list[bytes] = []  # lines of calls whose blobs may not be on disk yet
        self._files: dict[str, int] = {}
        self._shards = 0
        self._stored = 0
        self._fence: tuple[int, int] | None = None  # number of shards and stored calls at the fence
        self._manifest = {"format": fmt.FORMAT, "state": "open", **environment(), "info": info or {}}
        self._write_json(fmt.MANIFEST, self._manifest)
        # Unbuffered, because a forked process would write its copy of a buffer when it exits.
        self._calls = open(self.path / fmt.CALLS, "ab", buffering=0)  # noqa: SIM115 - open as long as the writer

    def signature(
        self, overload: str, kind: str, arguments: str, device: str = "cpu", host: bool = False
    ) -> SignatureCount:
        """Return the counter for this signature, the same object each time.

        Args:
            overload: Full overload name.
            kind: See `traces.overloads.kind`.
            arguments: Argument text.
            device: Device on which the calls run.
            host: See `SignatureCount`.
        """
        new = SignatureCount(overload, kind, arguments, device, host)
        return self._signatures.setdefault(new.key, new)

    def add_blob(self, data: Bytes, key: str | None = None) -> str:
        """Copy the bytes, unless the same bytes are stored already, and return their key.

        Pass `key`, their blake3, if it is known.
        """
        key = key or blake3(data).hexdigest()
        if key not in self._known:
            self._known.add(key)
            self._blobs[key] = bytes(data)
            self._buffered += len(data)
            if self._buffered >= SHARD_BYTES:
                self.flush()
        return key

    def stream_blob(self, nbytes: int, chunks: Iterable[Bytes]) -> str:
        """Write a large blob to its own shard, which `drop_blob` can delete, and return its key.

        If the same bytes are stored already, the new shard is discarded.

        Args:
            nbytes: Length in bytes.
            chunks: The bytes, in pieces.

        Raises:
            OSError: If writing fails.
        """
        digest = blake3(max_threads=blake3.AUTO)
        name = fmt.shard_name(self._shards)
        header = len(b"".join(fmt.shard_header({"0" * 64: nbytes})))
        with open(self.path / f"{name}.tmp", "wb") as file:
            file.seek(header)
            for chunk in chunks:
                digest.update(chunk)
                file.write(chunk)
            file.write(bytes(fmt.padded(nbytes) - nbytes))
            key = digest.hexdigest()
            if key not in self._known:
                file.seek(0)
                file.writelines(fmt.shard_header({key: nbytes}))
                file.flush()
                os.fsync(file.fileno())
        if key in self._known:
            os.unlink(self.path / f"{name}.tmp")
        else:
            os.replace(self.path / f"{name}.tmp", self.path / name)
            fmt.sync_directory(self.path)
            self._shards += 1
            self._known.add(key)
            self._files[name] = header + fmt.padded(nbytes)
            self._blob_shards[key] = (name, nbytes)
        return key

    def has_own_shard(self, key: str) -> bool:
        """Return True if the blob was streamed, so it can be dropped after it was written."""
        return key in self._blob_shards

    def read_blob(self, key: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the bytes of a streamed blob, mapped copy-on-write from disk."""
        name, nbytes = self._blob_shards[key]
        header = self._files[name] - fmt.padded(nbytes)
        return np.memmap(self.path / name, np.uint8, "c", header, (nbytes,))

    def drop_blob(self, key: str) -> None:
        """Delete a blob that no call refers to, if it has its own shard or is not written yet; otherwise keep it."""
        if key in self._blob_shards:
            name, _ = self._blob_shards.pop(key)
            os.unlink(self.path / name)
            del self._files[name]
        elif key in self._blobs:
            self._buffered -= len(self._blobs.pop(key))
        else:
            return
        self._known.discard(key)

    def amend(self, call: int, contents: dict[str, Any]) -> None:
        """Replace content specs, by group number, for a call that is written already."""
        self._lines.append(fmt.encode_line({"amend": call, "contents": contents}))
        self._amended.setdefault(call, {}).update(contents)
        self._levels[call] = max([self._levels[call], *map(fmt.level, contents.values())], key=fmt.LEVELS.index)

    def store(self, packed: Packed) -> dict[str, Any]:
        """Store the bytes of a packed call, and return the header to pass to `add_call`."""
        blobs = [None if data is None else self.add_blob(data) if len(data) else "" for data in packed.data]
        return {**packed.header(), "contents": blobs}

    def add_call(
        self,
        signature: SignatureCount,
        site: CallSite,
        header: dict[str, Any],
        results: Any,
        rng: dict[str, Any] | None = None,
    ) -> int:
        """Store one call and return its id.

        Args:
            signature: The signature's counter.
            site: The place of the call in the recording.
            header: Packed header with content specs.
            results: Fingerprints of the result and of mutated arguments.
            rng: Device, blob key and length of the generator state before the call.

        Returns:
            int: The id, which is the number of calls stored before.
        """
        call = self._stored
        self._levels[call] = max(map(fmt.level, header["contents"]), key=fmt.LEVELS.index, default="full")
        line = {
            "id": call,
            **vars(site),
            "overload": signature.overload,
            "signature": signature.key,
            "kind": signature.kind,
            "device": signature.device,
            "header": header,
            "results": results,
            "rng": rng,
        }
        self._lines.append(fmt.encode_line(line))
        self._stored += 1
        signature.samples.append(call)
        return call

    def add_dataflow(self, flow: Dataflow) -> None:
        """Write the dataflow of a step to dataflow.json."""
        self._files[fmt.DATAFLOW] = self._write_json(fmt.DATAFLOW, flow.as_json())

    def flush(self) -> None:
        """Make everything added so far durable: first the bytes, then the calls that refer to them."""
        if self._is_inherited():
            return
        if self._blobs:
            name = fmt.shard_name(self._shards)
            self._files[name] = fmt.write_durably(self.path / name, fmt.shard_chunks(self._blobs))
            self._shards += 1
            self._blobs, self._buffered = {}, 0
        rest = memoryview(b"".join(self._lines))
        while rest:
            rest = rest[self._calls.write(rest) :]
        self._lines.clear()
        os.fsync(self._calls.fileno())

    def keep_counts(self) -> None:
        """Save the counts of all signatures, for a fence."""
        for signature in self._signatures.values():
            signature.keep()

    def fence(self) -> None:
        """Flush, and mark the current end of the trace, to which `close(cut=True)` goes back."""
        self.flush()
        self._fence = self._shards, self._stored

    def close(self, complete: bool = True, cut: bool = False, first: int = 0, **totals: Any) -> None:
        """Write the counts and the manifest.

        Args:
            complete: False leaves a trace that readers treat as unfinished.
            cut: Discard everything after the fence.
            first: Merge all steps up to this number into one.
            **totals: Further entries for the manifest; they override entries with the same name.
        """
        if self._is_inherited():
            return
        try:
            self.flush()
            if complete and cut and self._fence is not None:
                self._cut(*self._fence)
            for signature in self._signatures.values() if first else ():
                signature.merge(first)
            if complete and (self._amended or cut or first):
                self._rewrite_calls(first)
            self._files[fmt.CALLS] = os.stat(self.path / fmt.CALLS).st_size
        finally:
            self._calls.close()
        signatures = {key: s.as_json() for key, s in self._signatures.items()}
        self._files[fmt.SIGNATURES] = self._write_json(fmt.SIGNATURES, signatures)
        counts = {
            "calls": sum(s.calls for s in self._signatures.values()),
            "stored": self._stored,
            "levels": dict(Counter(self._levels.values())),
            "steps": 1 + max((last for s in self._signatures.values() for _, last, _ in s.steps), default=-1),
        }
        state = "complete" if complete else "open"
        self._manifest.update({"state": state, **counts, **totals, "files": self._files})
        self._write_json(fmt.MANIFEST, self._manifest)

    def _cut(self, shards: int, stored: int) -> None:
        """Discard shards and stored calls beyond these numbers, and restore the saved counts."""
        for name in [n for n in self._files if n >= fmt.shard_name(shards)]:
            os.unlink(self.path / name)
            del self._files[name]
        self._stored = stored
        self._levels = {call: level for call, level in self._levels.items() if call < stored}
        self._signatures = {key: s for key, s in self._signatures.items() if s.cut(stored)}

    def _rewrite_calls(self, first: int) -> None:
        """Rewrite the stored calls in their final form: amended, cut, and with merged steps."""

        def lines() -> Iterable[bytes]:
            with open(self.path / fmt.CALLS, "rb") as file:
                for line in file:
                    value = json.loads(line.rpartition(b" ")[0])
                    if "amend" in value or value["id"] >= self._stored:
                        continue
                    value["step"] = max(value["step"] - first, 0)
                    for group, spec in self._amended.get(value["id"], {}).items():
                        value["header"]["contents"][int(group)] = spec
                    yield fmt.encode_line(value)

        fmt.write_durably(self.path / fmt.CALLS, lines())

    def abandon(self) -> None:
        """Close the trace and delete its directory."""
        if self._is_inherited():
            return
        self._calls.close()
        shutil.rmtree(self.path)

    def _is_inherited(self) -> bool:
        return os.getpid() != self._process

    def _write_json(self, name: str, value: Any) -> int:
        return fmt.write_durably(self.path / name, [fmt.to_json(value).encode(), b"\n"])


def make_directory(path: Path, force: bool) -> None:
    """Create the directory for a new trace. Raise UserError if it exists, or cannot be created or replaced."""
    if path.exists() or path.is_symlink():
        if not force:
            raise UserError(f"{path} exists; pass --force to replace it or --out DIR to write elsewhere")
        remove_trace(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    except OSError as error:
        raise UserError(f"{path}: cannot create this directory ({error.strerror})") from error


def remove_trace(path: Path) -> None:
    """Delete a trace or an empty directory.

    Raise UserError for anything else, so that no user file is lost.
    """
    is_trace = path.is_dir() and not path.is_symlink() and (not any(path.iterdir()) or (path / fmt.MANIFEST).is_file())
    if not is_trace:
        raise UserError(f"{path} exists and is not a trace, so it is not replaced; pass --out DIR to write elsewhere")
    shutil.rmtree(path)


def environment() -> dict[str, Any]:
    """Return the versions and switches that decide which operators run and which bits they produce."""
    import torch

    return {
        "versions": {name: _version(name) for name in ("enablekit", "torch", "triton")},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
