"""The journal of one operator's refinement: every event on disk before it acts, so that a killed run goes on.

`<workspace>/dialogs/<operator>/run-NNN/journal.jsonl`: a header line, then one line an event or request, each ended by
the CRC of what stands before it. A run is resumed as long as the task, the limits and the switches are the same;
otherwise a new run directory is begun and the old one is kept.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, TypeAlias

from generate.llm import Request
from generate.machine import DialogLimits, Event, EventKind, State, Switches, step
from generate.validation import check_version, validated
from traces import UserError
from traces.format import sync_directory

FORMAT = "enable-dialog"
VERSION = 2
READ = (1, 2)  # version 1 lacks some events and limits
NAME = "journal.jsonl"
_LOOKS = 5  # tries to lock a journal, for whoever just looks whether it is locked
Record: TypeAlias = dict[str, Any]

_OVERLOAD = re.compile(r"\w+::\w+(\.\w+)?")


def slug(overload: str) -> str:
    """The directory of an operator's dialogs: `aten::add.Tensor` -> `aten.add.Tensor`. Raises UserError."""
    if not _OVERLOAD.fullmatch(overload):
        raise UserError(f"{overload!r} is not the name of an overload such as aten::add.Tensor or aten::mm")
    return overload.replace("::", ".")


class Journal:
    """One run's journal, open for appending and locked against other processes.

    dropped: what was cut off at the end of the file when it was opened, in words; '' if nothing.
    """

    def __init__(self, path: Path, header: Record) -> None:
        """Open or create the journal at `path`. Raises UserError if it is damaged, foreign or in use."""
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # prompts tell of traces, which are private too
            self._file = open(path, "a+b")  # noqa: SIM115 - held open, and locked, until close()
        except OSError as error:
            raise UserError(f"{path}: cannot keep a journal here ({error.strerror}); move it away") from error
        try:
            _lock(self._file)
            self.records, self.dropped = self._recover()
        except BlockingIOError:
            self._file.close()
            raise UserError(f"{path}: another process is working on this operator; wait for it or stop it") from None
        except UserError:
            self._file.close()
            raise
        if not self.records:
            self.append(header)
            sync_directory(path.parent)

    @property
    def directory(self) -> Path:
        return self.path.parent

    @property
    def header(self) -> Record:
        return self.records[0]

    def append(self, record: Record) -> None:
        """Write one record; it is on the disk when this returns."""
        self._file.write(_line(record))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records.append(record)

    def append_event(self, event: Event) -> None:
        defaults = asdict(Event(event.kind))
        fields = {k: v for k, v in asdict(event).items() if v != defaults[k]}
        self.append({"event": str(event.kind), **fields})

    def append_request(self, request: Request, model: str, command: str = "") -> None:
        """Note that a model is about to be asked. A summary's messages are kept: no event holds them.

        command: what to type to go on with the run.
        """
        about = {"purpose": request.purpose, "number": request.number, "model": model, "command": command}
        record: Record = {"request": request.digest(), **about}
        if request.purpose != "generate":
            record["messages"] = [asdict(m) for m in request.messages]
        self.append(record)

    def fold(self, state: State) -> State:
        """The state after every event so far. A resumption undoes the failure before it."""
        before = state
        for record in self.records:
            if "resumed" in record:
                state = before
            elif "event" in record:
                before, state = state, step(state, event_of(record))
        return state

    def close(self) -> None:
        self._file.close()

    def _recover(self) -> tuple[list[Record], str]:
        self._file.seek(0)
        raw = self._file.read()
        records, good, bad_line = _read(raw, self.path)
        if good == len(raw):
            return records, ""
        if b"\n" in raw[good:-1]:
            raise UserError(f"{self.path}: line {bad_line} is damaged; move the run away to begin a new one")
        self._file.truncate(good)
        os.fsync(self._file.fileno())
        return records, f"{self.path}: dropped {len(raw) - good} bytes of a record that was not fully written"


def _lock(file: IO[bytes]) -> None:
    """Raises BlockingIOError if another process holds the lock for longer than a look at it takes."""
    for _ in range(_LOOKS):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def read_journal(path: Path, torn: bool = False) -> list[Record]:
    """The records of a journal, without locking or mending it. Raises UserError if it is damaged.

    torn: leave off a last record that is not fully written, as a killed run has, and one that works now; none may stay.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot read this journal ({error.strerror})") from error
    records, good, bad_line = _read(raw, path)
    if torn and b"\n" not in raw[good:-1]:
        return records
    if not records or good != len(raw):
        raise UserError(f"{path}: line {bad_line} is damaged or not fully written")
    return records


def usage(records: Sequence[Record]) -> Iterator[tuple[str, int, int]]:
    """Purpose and tokens of prompt and answer of every answered call; where nobody counted, an estimate as prompt."""
    state = before = State(DialogLimits(**records[0]["limits"])) if records else State()
    for record in records:
        if "resumed" in record:
            state = before
        elif "event" in record:
            event = event_of(record)
            before, state = state, step(state, event)
            if state.llm_calls > before.llm_calls:
                counted = event.prompt_tokens, event.completion_tokens
                purpose = "generate" if event.kind is EventKind.ANSWERED else "summarize"
                yield purpose, *(counted if sum(counted) else (state.tokens - before.tokens, 0))


def event_of(record: Record) -> Event:
    """The event that `append_event` wrote."""
    return validated(Event, {("kind" if name == "event" else name): value for name, value in record.items()})


def open_run(dialogs: Path, header: Record, restart: bool = False) -> Journal:
    """The newest run of `header["overload"]` if it is of the same header, else (or on restart) a new one.

    dialogs: the workspace's directory of dialogs. header: overload, task digest, limits and switches, as JSON.
    """
    header = {"format": FORMAT, "version": VERSION, **header}
    home = dialogs / slug(header["overload"])
    runs = sorted(p for p in home.glob("run-[0-9][0-9][0-9]*") if p.is_dir())
    if runs and not restart:
        journal = Journal(runs[-1] / NAME, header)
        if _completed(journal.header) == _completed(header):
            return journal
        journal.close()
    number = int(runs[-1].name.removeprefix("run-")) + 1 if runs else 1
    return Journal(home / f"run-{number:03d}" / NAME, header)


def _completed(header: Record) -> Record:
    """The header with what an older version left to defaults."""
    defaults = {"limits": asdict(DialogLimits()), "switches": asdict(Switches())}
    return header | {"version": VERSION} | {name: defaults[name] | header[name] for name in defaults}


def _line(record: Record) -> bytes:
    body = json.dumps(record, ensure_ascii=True, sort_keys=True)
    return f'{body[:-1]}, "crc": "{zlib.crc32(body.encode()):08x}"}}\n'.encode()


def _read(raw: bytes, path: Path) -> tuple[list[Record], int, int]:
    """The sound records from the start, the bytes they take, and the number of the first line that is not sound."""
    records: list[Record] = []
    good = 0
    for line in _whole_lines(raw):
        record = _checked(line)
        if record is None:
            break
        if not records:
            check_version(record, path, FORMAT, *READ, action="move the run away to begin a new one")
        records.append(record)
        good += len(line)
    return records, good, len(records) + 1


def _whole_lines(raw: bytes) -> Iterator[bytes]:
    for line in raw.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield line


def _checked(line: bytes) -> Record | None:
    body, mark, tail = line.rstrip(b"\n").rpartition(b', "crc": "')
    if not mark or tail != f'{zlib.crc32(body + b"}"):08x}"}}'.encode():
        return None
    record: Record = json.loads(body + b"}")
    return record
