"""Versions of the kernels that refinement accepted: which is in force, what was before it, and the way back.

    <root>/<group>/<name>.py                 the kernel in force; where there is none, the base library's is
    <root>/<group>/<name>.versions/001.py    the source of version 1; absent where that is the base library's kernel
    <root>/<group>/<name>.versions/001.json  its provenance

They are written in the order 001.py, 001.json, <name>.py, each by one rename. A process that is killed between two of
these leaves the kernel in force as it was, and at most a version that never came into force. Each version says what was
in force when it was made, so the history tells that of itself. Nothing is ever overwritten or removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from generate import BLOCKS
from generate.validation import check_version
from traces import UserError
from traces.format import sync_directory, write_durably
from verify.contract.kernel_file import KernelFile
from verify.signing import is_signed, sign

FORMAT = "enable-version"
VERSION = 1
BASE_LIBRARY, BY_HAND = "base", "by hand"  # where a kernel comes from that is no version
BASE = 0  # stands for the base library's kernel, or none where it has none
_SUFFIX = ".versions"
_LOCK = ".lock"
_RECORD = re.compile(r"\d{3,}\.json")


class VersionStanding(StrEnum):
    """Of one version."""

    IN_FORCE = "in force"
    REPLACED = "replaced"
    INTERRUPTED = "interrupted"  # never put in force, as the process was ended before that, or taken away by hand


@dataclass(frozen=True)
class Version:
    """One version. sha256: of its source, None where the base library's kernel is meant. overloads: that it serves.

    action: accepted, rolled back, or found (a file that somebody else had put in force). back_to: which version a
    roll-back put in force again. provenance: what the caller of `put` said.
    """

    number: int
    action: str
    when: str
    sha256: str | None
    overloads: tuple[str, ...]
    standing: VersionStanding
    back_to: int | None
    provenance: dict[str, Any]

    @property
    def origin(self) -> int:
        """The version that first had this source."""
        return self.number if self.back_to is None else self.back_to


class Versions:
    """The versions in one workspace's layer of kernels, `root`; safe for several threads and processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._held = threading.local()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other process and thread from changing the layer; may be entered again inside."""
        if getattr(self._held, "depth", 0):
            yield
            return
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / _LOCK, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._held.depth = 1
            try:
                yield
            finally:
                self._held.depth = 0

    def put(self, group: str, name: str, source: str, provenance: dict[str, Any]) -> int:
        """Put a kernel in force and keep it as a version, whose number is returned. Raises KernelFileError."""
        with self.locked():
            self._keep_found(group, name)
            return self._write(group, name, source, "accepted", None, provenance)

    def roll_back(self, group: str, name: str, to: int | None = None) -> int:
        """Put an earlier version in force, by default the one before; returns the number that this has as a version.

        Raises UserError for a number that there is not, a version in force already, and a damaged one.
        """
        with self.locked():
            self._keep_found(group, name)
            to = self.before(group, name) if to is None else to
            source = self.source(group, name, to)
            origin = next((v.origin for v in self.list(group, name) if v.number == to), BASE)
            if source == self._in_force(group, name):
                raise UserError(f"version {to} of {group}/{name} is in force already; see: enable library history")
            return self._write(group, name, source, "rolled back", origin, {})

    def list(self, group: str, name: str) -> Sequence[Version]:
        """Every version, oldest first. Raises UserError if a record is damaged."""
        records, now = _records(self._home(group, name)), _sha256(self._in_force(group, name))
        came = [a["sha256"] == b["before"] for a, b in itertools.pairwise(records)]
        came += [r["sha256"] == now or r["before"] != now for r in records[-1:]]
        standings = [VersionStanding.REPLACED if true else VersionStanding.INTERRUPTED for true in came]
        last = max((i for i, true in enumerate(came) if true), default=None)
        if last is not None and records[last]["sha256"] == now:
            standings[last] = VersionStanding.IN_FORCE
        return [_version(record, standing) for record, standing in zip(records, standings, strict=True)]

    def current(self, group: str, name: str) -> Version | None:
        """The version in force; None if that is the base library's kernel, or a file that is no version."""
        return next((v for v in self.list(group, name) if v.standing is VersionStanding.IN_FORCE), None)

    def before(self, group: str, name: str) -> int:
        """The number of the version to go back to from the one in force. Raises UserError if there is none."""
        versions = [v for v in self.list(group, name) if v.standing is not VersionStanding.INTERRUPTED]
        current = self.current(group, name)
        if current is None or current.origin == BASE:
            raise UserError(f"{group}/{name}: the base library's kernel is in force; nothing came before it")
        return next((v.origin for v in reversed(versions) if v.number < current.origin), BASE)

    def source(self, group: str, name: str, number: int) -> str | None:
        """The source of a version, None where it is the base library's kernel. Raises UserError."""
        found = {v.number: v for v in self.list(group, name)}
        if number == BASE:
            return None
        if number not in found:
            have = ", ".join(map(str, [f"{BASE} (the base library's kernel)", *found]))
            raise UserError(f"{group}/{name} has no version {number}; it has {have}")
        if found[number].sha256 is None:
            return None
        path = self._home(group, name) / f"{number:03d}.py"
        source = _read(path)
        if _sha256(source) != found[number].sha256:
            raise UserError(f"{path}: not the source that was accepted (its sha256 differs); choose another version")
        return source

    def names(self) -> Iterator[tuple[str, str]]:
        """(group, name) of every kernel that has versions."""
        for home in sorted(self.root.glob(f"*/*{_SUFFIX}")):
            yield home.parent.name, home.name.removesuffix(_SUFFIX)

    def path(self, group: str, name: str) -> Path:
        """Where the kernel in force is."""
        return self.root / group / f"{name}.py"

    def _home(self, group: str, name: str) -> Path:
        return self.root / group / f"{name}{_SUFFIX}"

    def _in_force(self, group: str, name: str) -> str | None:
        return _read(self.path(group, name))

    def _keep_found(self, group: str, name: str) -> None:
        """Make a version of the file in force if it is none: somebody wrote it by hand."""
        source, records = self._in_force(group, name), _records(self._home(group, name))
        known = {r[key] for r in records[-1:] for key in ("sha256", "before")}
        if source is not None and _sha256(source) not in known:
            self._write(group, name, source, "found", None, {})

    def _write(
        self, group: str, name: str, source: str | None, action: str, back_to: int | None, provenance: dict[str, Any]
    ) -> int:
        home, path = self._home(group, name), self.path(group, name)
        records = _records(home)
        number = 1 + max((r["number"] for r in records), default=0)
        before = records[-1]["sha256"] if action == "found" and records else _sha256(self._in_force(group, name))
        record = {
            "format": FORMAT,
            "version": VERSION,
            "number": number,
            "action": action,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "sha256": _sha256(source),
            "before": before,
            "overloads": KernelFile.parse(source, path, (BLOCKS,)).overloads if source is not None else (),
            "back_to": back_to,
            "provenance": provenance,
        }
        record["signed"] = sign(*_signed(record, path))
        text = json.dumps(record, indent=1, sort_keys=True)
        _make(home)
        if source is not None:
            write_durably(home / f"{number:03d}.py", [source.encode()])
        write_durably(home / f"{number:03d}.json", [f"{text}\n".encode()])
        if source is None:
            path.unlink(missing_ok=True)
            sync_directory(path.parent)
        elif action != "found":
            write_durably(path, [source.encode()])
        return number


def is_accepted(path: Path, platform: str) -> bool:
    """Return True if this user's commands accepted the kernel in force at `<root>/<group>/<name>.py` on a platform."""
    home = path.with_suffix(_SUFFIX)
    current = Versions(path.parents[1]).current(path.parent.name, path.stem)
    if current is None:
        return False
    records = {record["number"]: record for record in _records(home)}
    first = records.get(current.origin)
    if first is None or first["action"] != "accepted" or first["provenance"].get("platform") != platform:
        return False
    return all(_is_own(record, path) for record in (first, records[current.number]))


def _is_own(record: dict[str, Any], path: Path) -> bool:
    """Return True if this user's commands wrote the record of a version."""
    return is_signed(record.get("signed"), *_signed(record, path))


def _signed(record: dict[str, Any], path: Path) -> tuple[str, ...]:
    """Return what a signature of a version covers."""
    told = {key: value for key, value in record.items() if key != "signed"}
    return ("version", path.parent.name, path.stem, json.dumps(told, sort_keys=True))


def origin(path: Path) -> str:
    """Where the kernel in force at `<root>/<group>/<name>.py` comes from: which version it is, and whether a person
    added that (`by` in its provenance); BY_HAND for a file that is none."""
    group, name, versions = path.parent.name, path.stem, Versions(path.parents[1])
    current = versions.current(group, name)
    if current is None or current.action == "found":
        return BY_HAND
    first = next((v for v in versions.list(group, name) if v.number == current.origin), current)
    by_hand = f", {BY_HAND}" if first.provenance.get("by") == BY_HAND else ""
    home = path.with_suffix(_SUFFIX)
    own = all(_is_own(record, path) for record in _records(home) if record["number"] in (first.number, current.number))
    return f"version {current.number}{by_hand}{'' if own else ', not signed by you'}"


def _records(home: Path) -> list[dict[str, Any]]:
    """What the JSON files of a kernel's versions say, by number. Raises UserError."""
    paths = [p for p in home.glob("*.json") if _RECORD.fullmatch(p.name)]
    return [_record(p) for p in sorted(paths, key=lambda p: int(p.stem))]


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        sound = record["number"] == int(path.stem) and {"sha256", "before", "action", "when"} <= record.keys()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not the record of a version ({error!r}); move it away") from error
    check_version(record, path, FORMAT, VERSION)
    if not sound:
        raise UserError(f"{path}: not the record of version {int(path.stem)}; move it away")
    return dict(record)


def _version(record: dict[str, Any], standing: VersionStanding) -> Version:
    return Version(
        record["number"],
        record["action"],
        record["when"],
        record["sha256"],
        tuple(record.get("overloads", ())),
        standing,
        record.get("back_to"),
        record.get("provenance", {}),
    )


def _read(path: Path) -> str | None:
    """The text of a file, None if there is none. Raises UserError if it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot read this kernel file ({error})") from error


def _sha256(source: str | None) -> str | None:
    return None if source is None else hashlib.sha256(source.encode()).hexdigest()


def _make(directory: Path) -> None:
    """Make a directory, durably."""
    with suppress(FileExistsError):
        directory.mkdir(parents=True)
        for place in (directory.parent, directory.parent.parent):
            sync_directory(place)
