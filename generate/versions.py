"""Store the versions of accepted kernels, the kernel in force, and roll back to earlier versions.

    <root>/<group>/<name>.py                 the kernel in force; if absent, the base library's kernel is in force
    <root>/<group>/<name>.versions/001.py    the source of version 1; absent if that is the base library's kernel
    <root>/<group>/<name>.versions/001.json  its provenance

The files are written in the order 001.py, 001.json, <name>.py, each with one rename. If a process is killed between
two of them, the kernel in force is unchanged, and at most one version exists that never came into force. Each version
records the kernel that was in force before it, so the history shows such a version. Files are never overwritten or
removed, except <name>.py.
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
from traces.errors import read_problem
from traces.format import sync_directory, write_durably
from traces.program import program_name
from verify.contract.kernel_file import KernelFile
from verify.signing import is_signed, sign

FORMAT = "enable-version"
VERSION = 1
BASE_LIBRARY, BY_HAND = "base", "by hand"  # origins of kernels that are not a version
BASE = 0  # version number for the base library's kernel, or for no kernel if the base library has none
_SUFFIX = ".versions"
_LOCK = ".lock"
_RECORD = re.compile(r"\d{3,}\.json")


class VersionStanding(StrEnum):
    """The standing of one version."""

    IN_FORCE = "in force"
    REPLACED = "replaced"
    INTERRUPTED = "interrupted"  # the process was killed before it came into force, or the file was removed by hand


@dataclass(frozen=True)
class Version:
    """One version of a kernel.

    Attributes:
        number: Number, from 1.
        action: "accepted", "rolled back", or "found" for a file that was put in force by other means.
        when: Time in UTC, ISO 8601.
        sha256: SHA-256 over its source; None for the base library's kernel.
        overloads: Overloads that it serves.
        standing: Standing.
        back_to: Version that a rollback put in force again; None for other actions.
        provenance: Data from the caller of `put`.
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
        """Return the number of the version that first had this source."""
        return self.number if self.back_to is None else self.back_to


class Versions:
    """The versions in one workspace's kernel layer at `root`. Safe to use from several threads and processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock_state = threading.local()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the layer against changes by other processes and threads; reentrant."""
        if getattr(self._lock_state, "depth", 0):
            yield
            return
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / _LOCK, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._lock_state.depth = 1
            try:
                yield
            finally:
                self._lock_state.depth = 0

    def put(self, group: str, name: str, source: str, provenance: dict[str, Any]) -> int:
        """Put a kernel in force, store it as a version, and return its number.

        Raises:
            KernelFileError: If the source breaks the contract.
        """
        with self.locked():
            self._keep_found(group, name)
            return self._write(group, name, source, "accepted", None, provenance)

    def roll_back(self, group: str, name: str, to: int | None = None) -> int:
        """Put an earlier version in force, by default the previous one, and return the number of the new version.

        Raises:
            UserError: If the number is unknown, the version is already in force, or its source is damaged.
        """
        with self.locked():
            self._keep_found(group, name)
            to = self.before(group, name) if to is None else to
            source = self.source(group, name, to)
            origin = next((v.origin for v in self.list(group, name) if v.number == to), BASE)
            if source == self._in_force(group, name):
                raise UserError(
                    f"version {to} of {group}/{name} is in force already; see: {program_name()} library history"
                )
            return self._write(group, name, source, "rolled back", origin, {})

    def list(self, group: str, name: str) -> Sequence[Version]:
        """Return all versions, oldest first.

        A version came into force if the next record names it as its predecessor. For the last record, it did if
        the file in force has its source, or no longer has the source from before it.

        Raises:
            UserError: If a record is damaged.
        """
        records, now = _records(self._home(group, name)), _sha256(self._in_force(group, name))
        was_in_force = [a["sha256"] == b["before"] for a, b in itertools.pairwise(records)]
        was_in_force += [r["sha256"] == now or r["before"] != now for r in records[-1:]]
        standings = [VersionStanding.REPLACED if true else VersionStanding.INTERRUPTED for true in was_in_force]
        last = max((i for i, true in enumerate(was_in_force) if true), default=None)
        if last is not None and records[last]["sha256"] == now:
            standings[last] = VersionStanding.IN_FORCE
        return [_version(record, standing) for record, standing in zip(records, standings, strict=True)]

    def current(self, group: str, name: str) -> Version | None:
        """Return the version in force; None for the base library's kernel, or for a file that is not a version."""
        return next((v for v in self.list(group, name) if v.standing is VersionStanding.IN_FORCE), None)

    def before(self, group: str, name: str) -> int:
        """Return the version number to roll back to from the version in force.

        Raises:
            UserError: If there is none.
        """
        versions = [v for v in self.list(group, name) if v.standing is not VersionStanding.INTERRUPTED]
        current = self.current(group, name)
        if current is None or current.origin == BASE:
            raise UserError(f"{group}/{name}: the base library's kernel is in force, and no version is earlier")
        return next((v.origin for v in reversed(versions) if v.number < current.origin), BASE)

    def source(self, group: str, name: str, number: int) -> str | None:
        """Return a version's source; None for the base library's kernel.

        Raises:
            UserError: If the number is unknown or the source is damaged.
        """
        versions = {v.number: v for v in self.list(group, name)}
        if number == BASE:
            return None
        if number not in versions:
            have = ", ".join(map(str, [f"{BASE} (the base library's kernel)", *versions]))
            raise UserError(f"{group}/{name} has no version {number}; it has {have}")
        if versions[number].sha256 is None:
            return None
        path = self._home(group, name) / f"{number:03d}.py"
        source = _read(path)
        if _sha256(source) != versions[number].sha256:
            raise UserError(f"{path}: not the source that was accepted (its sha256 differs); choose another version")
        return source

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield group and name for each kernel that has versions."""
        for home in sorted(self.root.glob(f"*/*{_SUFFIX}")):
            yield home.parent.name, home.name.removesuffix(_SUFFIX)

    def path(self, group: str, name: str) -> Path:
        """Return the path of the kernel in force."""
        return self.root / group / f"{name}.py"

    def _home(self, group: str, name: str) -> Path:
        """Return the directory with a kernel's versions."""
        return self.root / group / f"{name}{_SUFFIX}"

    def _in_force(self, group: str, name: str) -> str | None:
        """Return the source of the file in force; None if there is none."""
        return _read(self.path(group, name))

    def _keep_found(self, group: str, name: str) -> None:
        """Store the file in force as a version if it is not one yet, because it was written by hand."""
        source, records = self._in_force(group, name), _records(self._home(group, name))
        known = {r[key] for r in records[-1:] for key in ("sha256", "before")}
        if source is not None and _sha256(source) not in known:
            self._write(group, name, source, "found", None, {})

    def _write(
        self, group: str, name: str, source: str | None, action: str, back_to: int | None, provenance: dict[str, Any]
    ) -> int:
        """Write a version and put it in force; for the action "found" the file in force stays as it is."""
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
    """Return True if this user's commands wrote the version's record."""
    return is_signed(record.get("signed"), *_signed(record, path))


def _signed(record: dict[str, Any], path: Path) -> tuple[str, ...]:
    """Return the data that a version's signature covers."""
    unsigned = {key: value for key, value in record.items() if key != "signed"}
    return ("version", path.parent.name, path.stem, json.dumps(unsigned, sort_keys=True))


def origin(path: Path) -> str:
    """Return the origin of the kernel in force at `<root>/<group>/<name>.py`, as text.

    This is the version, or BY_HAND for a file that is not a version. A note follows if a person added the
    version (`by` in its provenance), or if its signature is not this user's.
    """
    group, name, versions = path.parent.name, path.stem, Versions(path.parents[1])
    current = versions.current(group, name)
    if current is None or current.action == "found":
        return BY_HAND
    first = next((v for v in versions.list(group, name) if v.number == current.origin), current)
    by_hand = f", {BY_HAND}" if first.provenance.get("by") == BY_HAND else ""
    home = path.with_suffix(_SUFFIX)
    signed = all(
        _is_own(record, path) for record in _records(home) if record["number"] in (first.number, current.number)
    )
    return f"version {current.number}{by_hand}{'' if signed else ', not signed by you'}"


def _records(home: Path) -> list[dict[str, Any]]:
    """Return the records for a kernel's versions, sorted by number.

    Raises:
        UserError: If a record is damaged.
    """
    paths = [p for p in home.glob("*.json") if _RECORD.fullmatch(p.name)]
    return [_record(p) for p in sorted(paths, key=lambda p: int(p.stem))]


def _record(path: Path) -> dict[str, Any]:
    """Return the record in a file, or raise UserError if it is damaged."""
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
    """Return a file's text; None if there is no file.

    Raises UserError if it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot read this kernel file ({read_problem(error)})") from error


def _sha256(source: str | None) -> str | None:
    return None if source is None else hashlib.sha256(source.encode()).hexdigest()


def _make(directory: Path) -> None:
    """Create a directory durably."""
    with suppress(FileExistsError):
        directory.mkdir(parents=True)
        for parent in (directory.parent, directory.parent.parent):
            sync_directory(parent)
