"""Journal the refinement of one operator: each event is on disk before it takes effect, so a killed run can resume.

The file `<workspace>/dialogs/<operator>/run-NNN/journal.jsonl` has a header line and then one line per event or
request. Each line ends with the CRC-32 over the rest. A run is resumed if the task, the limits and the switches are
the same; otherwise a new run directory is created, and the old one is kept.
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
READ = (1, 2)  # readable versions; version 1 lacks some events and limits
NAME = "journal.jsonl"
_LOOKS = 5  # attempts to lock a journal, because `enable dialog` takes the lock for a moment to test it
Record: TypeAlias = dict[str, Any]

_OVERLOAD = re.compile(r"\w+::\w+(\.\w+)?")


def slug(overload: str) -> str:
    """Return the directory name for an operator's dialogs: `aten::add.Tensor` gives `aten.add.Tensor`.

    Raises:
        UserError: If the text is not an overload name.
    """
    if not _OVERLOAD.fullmatch(overload):
        raise UserError(f"{overload!r} is not the name of an overload such as aten::add.Tensor or aten::mm")
    return overload.replace("::", ".")


class Journal:
    """One run's journal, open for appending and locked against other processes.

    Attributes:
        path: The file.
        records: All records, the header first.
        dropped: Message on an incomplete record that was removed from the end when the file was opened; '' if none.
    """

    def __init__(self, path: Path, header: Record) -> None:
        """Open or create the journal at `path`.

        Raises:
            UserError: If the file is damaged, has an unknown format or is in use.
        """
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # prompts contain details from private traces
            self._file = open(path, "a+b")  # noqa: SIM115 - open and locked until close()
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
        """Return the run's directory."""
        return self.path.parent

    @property
    def header(self) -> Record:
        """Return the header record."""
        return self.records[0]

    def append(self, record: Record) -> None:
        """Write one record; it is on disk when this returns."""
        self._file.write(_line(record))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records.append(record)

    def append_event(self, event: Event) -> None:
        """Write an event, without the fields that have their default."""
        defaults = asdict(Event(event.kind))
        fields = {k: v for k, v in asdict(event).items() if v != defaults[k]}
        self.append({"event": str(event.kind), **fields})

    def append_request(self, request: Request, model: str, command: str = "") -> None:
        """Record that a model is about to be called.

        The messages for a summary are stored, because no event contains them.

        Args:
            request: The request.
            model: Name of the model.
            command: Command that resumes the run.
        """
        about = {"purpose": request.purpose, "number": request.number, "model": model, "command": command}
        record: Record = {"request": request.digest(), **about}
        if request.purpose != "generate":
            record["messages"] = [asdict(m) for m in request.messages]
        self.append(record)

    def fold(self, state: State) -> State:
        """Return the state after all events so far; a resumption undoes the preceding failure."""
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
        """Read the records, and truncate an incomplete record at the end.

        Raises UserError if a line before the end is damaged.
        """
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
    """Lock the file, or raise BlockingIOError if another process keeps the lock longer than a test for it takes."""
    for _ in range(_LOOKS):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def read_journal(path: Path, torn: bool = False) -> list[Record]:
    """Return a journal's records, without locking or repairing it.

    Args:
        path: The file.
        torn: True to skip an incomplete last record, as in a killed run or in one that is being written. The
            result may then be empty.

    Raises:
        UserError: If the journal cannot be read or is damaged.
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
    """Yield purpose, prompt tokens and completion tokens for each answered call.

    If the provider reported no counts, the estimate is given as prompt tokens.
    """
    state = before = State(DialogLimits(**records[0]["limits"])) if records else State()
    for record in records:
        if "resumed" in record:
            state = before
        elif "event" in record:
            event = event_of(record)
            before, state = state, step(state, event)
            if state.llm_calls > before.llm_calls:
                reported = event.prompt_tokens, event.completion_tokens
                purpose = "generate" if event.kind is EventKind.ANSWERED else "summarize"
                yield purpose, *(reported if sum(reported) else (state.tokens - before.tokens, 0))


def event_of(record: Record) -> Event:
    """Return the event in a record that `append_event` wrote."""
    return validated(Event, {("kind" if name == "event" else name): value for name, value in record.items()})


def open_run(dialogs: Path, header: Record, restart: bool = False) -> Journal:
    """Return the newest run for `header["overload"]` if its header is the same, and otherwise a new run.

    Args:
        dialogs: The workspace's directory with dialogs.
        header: Overload, task digest, limits and switches, as JSON.
        restart: True for a new run in any case.
    """
    header = {"format": FORMAT, "version": VERSION, **header}
    home = dialogs / slug(header["overload"])
    runs = runs_of(home)
    if runs and not restart:
        journal = Journal(runs[-1] / NAME, header)
        if _completed(journal.header) == _completed(header):
            return journal
        journal.close()
    number = _run_number(runs[-1]) + 1 if runs else 1
    return Journal(home / f"run-{number:03d}" / NAME, header)


def runs_of(home: Path) -> list[Path]:
    """Return the directories of an operator's runs, ordered by number; `run-1000` follows `run-999`."""
    return sorted((p for p in home.glob("run-[0-9][0-9][0-9]*") if p.is_dir()), key=_run_number)


def _run_number(directory: Path) -> int:
    digits = directory.name.removeprefix("run-")
    return int(digits) if digits.isdecimal() else 0


def _completed(header: Record) -> Record:
    """Return the header with defaults for the fields that an older version did not write."""
    defaults = {"limits": asdict(DialogLimits()), "switches": asdict(Switches())}
    return header | {"version": VERSION} | {name: defaults[name] | header[name] for name in defaults}


def _line(record: Record) -> bytes:
    """Return the line for a record: its JSON with the CRC-32 as the last field."""
    body = json.dumps(record, ensure_ascii=True, sort_keys=True)
    return f'{body[:-1]}, "crc": "{zlib.crc32(body.encode()):08x}"}}\n'.encode()


def _read(raw: bytes, path: Path) -> tuple[list[Record], int, int]:
    """Return the valid records from the start, their length in bytes, and the number of the first invalid line."""
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
    """Yield the lines that end with a newline."""
    for line in raw.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield line


def _checked(line: bytes) -> Record | None:
    """Return the record in a line; None if its CRC does not match."""
    body, mark, tail = line.rstrip(b"\n").rpartition(b', "crc": "')
    if not mark or tail != f'{zlib.crc32(body + b"}"):08x}"}}'.encode():
        return None
    record: Record = json.loads(body + b"}")
    return record
