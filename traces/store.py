"""Trace reader.

Whatever the directory contains, every read returns a value or raises a TraceError that names the file and the field.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traces import contents as spans
from traces import format as fmt
from traces.arguments import checked
from traces.errors import TraceError, UserError
from traces.program import program_name, program_words
from traces.records import CallRecord, Signature, check_types, manifest_of, read_json, record_of, signatures_of
from traces.shards import Shards

if TYPE_CHECKING:
    import pandas as pd

    from traces.dataflow import Dataflow
    from traces.materialise import Materialiser
    from traces.values import Packed


class Trace:
    """A trace on disk; open one with `Trace.open`.

        trace = Trace.open("step.trace")
        for record in trace.calls():
            print(record.overload, record.phase)

    Attributes:
        path: The directory.
        manifest: Versions, settings and totals, as manifest.json holds them.
        complete: True if the recording finished.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.complete: bool = manifest["state"] == "complete"
        self._signatures: dict[str, Signature] | None = None
        self._lost: list[str] = []

    @classmethod
    @checked
    def open(cls, path: str | os.PathLike[str], partial: bool = False) -> Trace:
        """Open a trace.

        Args:
            path: The directory.
            partial: True also accepts a trace whose recording did not finish.

        Returns:
            Trace: The trace. Its calls are read on demand.

        Raises:
            TraceError: If there is no trace, its format is unknown, or a file is missing or has the wrong size.
        """
        root = Path(path)
        if not (root / fmt.MANIFEST).is_file():
            raise TraceError(
                f"{root}: no trace here (no {fmt.MANIFEST}); record one with: {program_name()} capture MODEL"
            )
        trace = cls(root, manifest_of(root))
        if trace.complete:
            trace._check_files()
        elif not partial:
            raise TraceError(f"{root}: the recording did not finish (state open); record it again with --force")
        return trace

    @property
    def signatures(self) -> dict[str, Signature]:
        """Return all signatures by key.

        If an unfinished trace has no signatures.json, its stored calls provide signatures and counts, without argument
        text.
        """
        if self._signatures is None:
            path = self.path / fmt.SIGNATURES
            self._signatures = signatures_of(path) if self.complete or path.is_file() else self._from_calls()
        return self._signatures

    @cached_property
    def on_host(self) -> frozenset[str]:
        """Return the keys of signatures whose calls ran on the host, if other calls ran on an accelerator.

        Such calls, such as an optimizer's step counters, are no work for the accelerator. The set is empty for a
        CPU-only trace, and for a trace from an earlier version, which does not record devices.
        """
        types = {key: s.device.partition(":")[0] for key, s in self.signatures.items()}
        host = frozenset(key for key, name in types.items() if name == "cpu")
        return host if set(types.values()) - {"cpu", "meta", ""} else frozenset()

    @property
    def asked(self) -> list[Signature]:
        """Return the signatures whose calls the device must run: all except those in `on_host`."""
        return [s for key, s in self.signatures.items() if key not in self.on_host]

    @property
    def torn(self) -> bool:
        """Return True if an unfinished trace's call file was cut off."""
        return self._index.torn

    @property
    def damage(self) -> list[str]:
        """Return one line for each loss in an unfinished trace: torn calls, shards, calls without their bytes."""
        return [] if self.complete else [*self._index.damage, *self._lost]

    def calls(self) -> Iterator[CallRecord]:
        """Yield the stored calls in recording order; for an unfinished trace, only those whose bytes exist.

        Raise TraceError if a call is damaged, repeats an id or names an unknown signature.
        """
        if self.complete:
            ids = set[int]()
            for line, where, _ in self._lines():
                record = record_of(line, where)
                if record.id in ids:
                    raise TraceError(f"{where}: id {record.id} occurs twice")
                if record.signature not in self.signatures:
                    raise TraceError(f"{where}: signature {record.signature[:40]!r} is not in {fmt.SIGNATURES}")
                ids.add(record.id)
                yield record
            return
        for call in self._index.offsets:
            yield self.record(call, str(self.path))

    def record(self, call: int, where: str) -> CallRecord:
        """Return the stored call with this id. Raise TraceError naming `where` if there is none."""
        return self._read(self._index, call, where)

    def _read(self, index: _Index, call: int, where: str) -> CallRecord:
        if call not in index.offsets:
            raise TraceError(f"{where}: call {call} is not stored here")
        line, name, _ = next(self._lines(*index.offsets[call]))
        return record_of(_amended(line, index.amendments.get(call, {}), name), name)

    def _lines(self, position: int = 0, number: int = 1) -> Iterator[tuple[Any, str, tuple[int, int]]]:
        """Yield line values from a file position on, each with its name and its (position, line number)."""
        path = self.path / fmt.CALLS
        try:
            with open(path, "rb") as file:
                file.seek(position)
                while line := file.readline(fmt.MAX_LINE):
                    where = f"{path}:{number}"
                    yield self._decoded(line, where), where, (position, number)
                    position, number = position + len(line), number + 1
        except OSError as error:
            raise TraceError(f"{path}: cannot be read ({error.strerror})") from error

    def _decoded(self, line: bytes, where: str) -> Any:
        try:
            return fmt.decode_line(line, where)
        except TraceError as error:
            raise error if self.complete else _Torn(f"{error}; nothing is read from there on") from error

    @cached_property
    def _index(self) -> _Index:
        index = _Index()
        # If none of these exists, the recording has not stored anything yet.
        begun = self.complete or (self.path / fmt.CALLS).exists() or self.shards.keys()
        try:
            for line, where, offset in self._lines() if begun else ():
                if not self.complete and isinstance(line, dict) and "amend" in line:
                    index.amend(line, where)
                else:
                    index.add(record_of(line, where).id, offset, where)
        except _Torn as error:
            index.torn = True
            index.damage.append(str(error))
        if not self.complete:
            self._leave_out_what_is_lost(index)
        return index

    def _leave_out_what_is_lost(self, index: _Index) -> None:
        present = self.shards.keys()
        # The source of reproduced contents always has a lower id, so one ascending pass suffices.
        for call in sorted(index.offsets):
            record = self._read(index, call, str(self.path))
            keys = [*spans.blobs(record.contents), *([record.rng["blob"]] if record.rng else [])]
            lost = [f"blob {key}" for key in keys if key not in present]
            lost += [f"call {s['call']}" for s in spans.sources(record.contents) if s["call"] not in index.offsets]
            if lost:
                del index.offsets[call]
                index.damage.append(f"{record.where}: call {call} is left out: {lost[0]} is lost")

    @cached_property
    def dataflow(self) -> Dataflow:
        """Return the dataflow of the first step.

        Raise UserError if it was not recorded, and TraceError if it is damaged.
        """
        from traces.dataflow import Dataflow

        path = self.path / fmt.DATAFLOW
        if fmt.DATAFLOW not in self.manifest.get("files", {}):
            model = self.manifest.get("info", {}).get("model", "MODEL")
            again = shlex.join([*program_words(), "capture", str(model), "--dataflow", "--force"])
            raise UserError(f"{self.path} holds no dataflow; record it: {again}")
        flow = Dataflow.of_json(read_json(path), str(path))
        stored = {call.stored for call in flow.calls if call.stored is not None}
        if unknown := sorted(stored - self._index.offsets.keys()):
            raise TraceError(f"{path}: call {unknown[0]} is not stored here")
        return flow

    def packed(self, record: CallRecord) -> Packed:
        """Return a stored call's arguments with their bytes.

        Args:
            record: A call of this trace.

        Returns:
            Packed: The bytes are read and checked against their hashes, drawn from statistics, or reproduced.

        Raises:
            NotRecorded: If the trace does not hold the information to restore them.
            TraceError: If they are damaged.
        """
        return self._materialiser.packed(record)

    def frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row for each stored call; `traces.frames` describes the columns."""
        from traces.frames import frame_of

        return frame_of(self, self.calls())

    @cached_property
    def _materialiser(self) -> Materialiser:
        from traces.materialise import Materialiser

        return Materialiser(self)

    def blob(self, key: Any, nbytes: int, where: str) -> bytes:
        """Return the bytes stored under a key, after checking their hash.

        Args:
            key: blake3 of the bytes, or "" for no bytes.
            nbytes: Expected length.
            where: Location for error messages.

        Returns:
            bytes: The blob without padding.

        Raises:
            TraceError: If the blob is missing or altered.
        """
        return self.shards.blob(key, nbytes, where)

    @cached_property
    def shards(self) -> Shards:
        """Return the blobs. In an unfinished trace, unreadable shards are added to `damage`."""
        names = self.manifest["files"] if self.complete else [p.name for p in self.path.iterdir()]
        return Shards(self.path, [n for n in names if fmt.SHARD.fullmatch(n)], None if self.complete else self._lost)

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
                device=r.device or "",
            )
            for r in records
        }


@dataclass
class _Index:
    """File position for each stored call, with the amendments and losses in an unfinished trace.

    `offsets` maps a call to the (position, line number) of its line.
    """

    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    amendments: dict[int, dict[str, Any]] = field(default_factory=dict)  # specs by group
    torn: bool = False
    damage: list[str] = field(default_factory=list)

    def add(self, call: int, offset: tuple[int, int], where: str) -> None:
        if call in self.offsets:
            raise TraceError(f"{where}: id {call} occurs twice")
        self.offsets[call] = offset

    def amend(self, line: dict[str, Any], where: str) -> None:
        check_types(line, {"amend": int, "contents": dict}, where)
        if line["amend"] not in self.offsets:
            raise TraceError(f"{where}: amend: there is no call {line['amend']} before")
        for group, spec in line["contents"].items():
            spans.check_span(spec, line["amend"], f"{where}: contents.{group[:20]}")
        self.amendments.setdefault(line["amend"], {}).update(line["contents"])


class _Torn(TraceError):
    """A line of an unfinished trace that was not written completely."""


def _amended(line: Any, amendment: dict[str, Any], where: str) -> Any:
    contents = line["header"]["contents"]
    for group, spec in amendment.items():
        if not group.isdecimal() or int(group) >= len(contents):
            raise TraceError(f"{where}: an amendment names group {group[:20]!r}, there are {len(contents)}")
        contents[int(group)] = spec
    return line
