"""Verdicts, kept: keyed by what was judged and what judged it, so that nothing is run twice.

Whoever asks is told the strongest verdict that is known: a kernel that failed a case with every layer asked is told to
fail it whichever command asks, and a weaker pass hides nothing.
"""

from __future__ import annotations

import hashlib
import math
import platform as machine
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from traces import UserError
from verify.judging import layers
from verify.judging.standings import Passed, Standing, Standings
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform
from verify.signing import is_signed, sign

WHOLE = "whole"  # in the place of a case: the kernel file passed a trial in which nothing was left out
_SCHEMA_VERSION = 8
_EARLIER = (1, 2, 3, 4, 5, 6, 7)  # formats that are not read; their verdicts are dropped
PATIENCE_SECONDS = 60.0  # for another process that writes
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_SPACE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)  # a limit on file sizes, or a quota, is an I/O error
_NO_ACCESS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
_TABLE = """
CREATE TABLE IF NOT EXISTS verdicts (
    key TEXT PRIMARY KEY,       -- sha256 over the columns up to `judge`
    kernel TEXT NOT NULL,       -- key of each kernel file that took part
    overload TEXT NOT NULL,
    case_id TEXT NOT NULL,
    platform TEXT NOT NULL,     -- name and sha256 of its profile
    allowed TEXT NOT NULL,      -- the conditions, as in Conditions
    strict INTEGER NOT NULL,
    off TEXT NOT NULL,
    repeated INTEGER NOT NULL,
    sandbox TEXT NOT NULL,
    judge TEXT NOT NULL,        -- versions of torch, triton and the layers of judging
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL,
    report TEXT NOT NULL,
    layer TEXT NOT NULL,        -- the guard that spoke, and its rule
    rule TEXT NOT NULL,
    dtypes TEXT NOT NULL,       -- floating dtypes that the case names, sorted, with commas
    signature TEXT NOT NULL,    -- of the case; cases of different ones are independent
    kind TEXT NOT NULL,         -- of the call, as in verify/cases/kinds.py
    variants TEXT NOT NULL,     -- of the kernels that it launches, as in Verdict
    reached TEXT NOT NULL,      -- of the kernel file, likewise
    signed TEXT NOT NULL,       -- signature of all columns above
    seconds REAL NOT NULL,
    created REAL NOT NULL
)
"""
_CONDITIONS = "allowed, strict, off, repeated, sandbox"
_VERDICT = "outcome, detail, report, layer, rule, dtypes, signature, kind, variants, reached"
_SIGNED = f"key, kernel, overload, case_id, platform, {_CONDITIONS}, judge, {_VERDICT}"
_OF_JUDGE = "platform = ? AND judge IN (?, ?, ?, ?)"
_INDEX = "CREATE INDEX IF NOT EXISTS verdicts_of_case ON verdicts (case_id)"


@dataclass(frozen=True)
class Conditions:
    """Under which a case is judged. strict: results need the strides that ATen gives. allowed: what the wrapper may ask
    of ATen besides memory and views. off: layers that are not asked. repeated: the case is run again, in other orders
    and with other contents. sandbox: what confines the child.
    """

    strict: bool = True
    allowed: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    repeated: bool = False
    sandbox: str = ""

    @property
    def full(self) -> bool:
        """Whether every layer is asked, and all that is asked of the library's kernels: such verdicts count."""
        return self.strict and not self.allowed and not self.off

    def covers(self, other: Conditions) -> bool:
        """Whether who passes under these passes under those."""
        return (
            (self.strict, self.sandbox) == (other.strict, other.sandbox)
            and self.allowed <= other.allowed
            and self.off <= other.off
            and self.repeated >= other.repeated
        )


@dataclass(frozen=True)
class Identity:
    """What a verdict is keyed by. kernels: as in Job.kernels."""

    kernels: tuple[str, ...]
    overload: str
    case: str
    platform: Platform
    conditions: Conditions = Conditions()

    @property
    def columns(self) -> tuple[str | int, ...]:
        """As in the table."""
        under = self.conditions
        told = (",".join(sorted(under.allowed)), int(under.strict), ",".join(sorted(under.off)), int(under.repeated))
        place = _place(self.platform)
        judge = judge_version(self.platform, layers.draws(self.overload), self.case == WHOLE)
        return ("+".join(self.kernels), self.overload, self.case, place, *told, under.sandbox, judge)

    @property
    def key(self) -> str:
        return hashlib.sha256("\0".join(map(str, self.columns)).encode()).hexdigest()


class _Row(NamedTuple):
    """The signed columns of a verdict."""

    key: str
    kernel: str
    overload: str
    case_id: str
    platform: str
    allowed: str
    strict: int
    off: str
    repeated: int
    sandbox: str
    judge: str
    outcome: str
    detail: str
    report: str
    layer: str
    rule: str
    dtypes: str
    signature: str
    kind: str
    variants: str
    reached: str

    @property
    def conditions(self) -> Conditions:
        allowed, off = _words(self.allowed), _words(self.off)
        return Conditions(bool(self.strict), allowed, off, bool(self.repeated), self.sandbox)

    @property
    def verdict(self) -> Verdict:
        told = (self.detail, self.report, self.layer, self.rule, self.sandbox)
        known = (self.dtypes, self.signature, self.kind, self.variants, self.reached)
        return Verdict(self.case_id, Outcome(self.outcome), *told, *known)


@cache
def judge_version(platform: Platform, draws: bool = True, whole: bool = False) -> str:
    """Return what judges on a platform: a verdict of another torch, triton or layer of judging is not this one's.

    draws: of overloads that may draw random numbers. whole: of a whole trial.
    """
    return f"{_machine()}, judge: {layers.versions(platform, draws, whole)}"


@cache
def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "triton", "numpy"))
    return f"{packages}, python {machine.python_version()}"


class VerdictStore:
    """SQLite in WAL mode; safe for the threads of one process and for several processes.

    Verdicts that this user's commands did not sign (verify/signing.py) are not believed, and judged anew.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] = lambda line: None) -> None:
        """Open or create a store.

        Args:
            warn: Is called once with a line if a verdict is not believed.

        Raises:
            UserError: The file is no verdict store, or a newer one.
        """
        self._path, self._warn = path, warn
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=PATIENCE_SECONDS)
        except (OSError, sqlite3.OperationalError) as error:
            raise UserError(f"{path}: cannot be opened ({error}); name another workspace") from error
        try:
            self._write_ahead()
            self._db.execute("PRAGMA synchronous=FULL")  # in WAL mode: fsync before a commit returns
            if self._format() != _SCHEMA_VERSION:
                self._create()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise self._explained(error) from error
        except UserError:
            self._db.close()
            raise

    def _write_ahead(self) -> None:
        """Turn to WAL mode. For this SQLite does not wait for other processes, so it is tried again."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if _kind(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _format(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> None:
        """Make the table, if no other process has meanwhile. Raises UserError for a format of another release."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            found = self._format()
            if found not in (0, *_EARLIER, _SCHEMA_VERSION):
                raise UserError(
                    f"{self._path}: verdicts of format {found}, this toolkit reads {_SCHEMA_VERSION}; remove the file"
                )
            if found in _EARLIER:
                self._db.execute("DROP TABLE verdicts")
            self._db.execute(_TABLE)
            self._db.execute(_INDEX)
            self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")

    def _explained(self, error: Exception) -> UserError:
        """What went wrong with the file and what to do: only damage is a reason to remove it."""
        kind = _kind(error)
        if kind in _BUSY:
            return UserError(f"{self._path}: in use by another process; wait for it or stop it")
        if kind in _NO_SPACE:
            return UserError(
                f"{self._path}: the verdict could not be written ({error}); free space on that disk, then run the same "
                "command again: verdicts kept so far are sound"
            )
        if kind in _NO_ACCESS:
            return UserError(f"{self._path}: cannot be opened for writing ({error}); name another workspace")
        return UserError(f"{self._path}: not a sound verdict store ({error}); remove it, all will be judged anew")

    def get(self, identity: Identity) -> Verdict | None:
        """The strongest verdict that is known under conditions which decide these; None if there is none.

        Where every layer is to be asked, that is a failure under any conditions that ask them all; else a pass under
        conditions that cover these. Raises UserError if the store is damaged.
        """
        kernels, overload, case, place, *_, judge = identity.columns
        rows = self._rows(
            "case_id = ? AND kernel = ? AND overload = ? AND platform = ? AND judge = ?",
            (case, kernels, overload, place, judge),
        )
        asked, passed = identity.conditions, None
        for under, verdict in ((row.conditions, row.verdict) for row in rows):
            if under == asked or (verdict.outcome is Outcome.PASS and under.covers(asked)):
                passed = passed or verdict
            if verdict.outcome is not Outcome.PASS and (under == asked or (under.full and asked.full)):
                return verdict
        return passed

    def put(self, identity: Identity, verdict: Verdict, seconds: float) -> None:
        """Keep a verdict: on the disk when this returns, never changed. Raises UserError if that cannot be."""
        told = (verdict.detail, verdict.report, verdict.layer, verdict.rule)
        known = (verdict.dtypes, verdict.signature, verdict.kind, verdict.variants, verdict.reached)
        row = (identity.key, *identity.columns, str(verdict.outcome), *told, *known)
        values = (*row, sign(*map(str, row)), seconds, time.time())
        try:
            with self._lock, self._db:
                found = self._db.execute(f"SELECT {_SIGNED}, signed FROM verdicts WHERE key = ?", (identity.key,))
                if not any(self._is_believed(kept) for kept in found):
                    self._db.execute(f"REPLACE INTO verdicts VALUES ({','.join('?' * len(values))})", values)
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def put_whole(self, kernel: str, overload: str, platform: Platform, sandbox: str, detail: str) -> None:
        """Keep that a kernel file passed a trial in which nothing was left out.

        Args:
            kernel: Its key.
            overload: The first that it lists.
        """
        identity = Identity((kernel,), overload, WHOLE, platform, Conditions(sandbox=sandbox))
        self.put(identity, Verdict(WHOLE, Outcome.PASS, detail), 0.0)

    def standings(self, platform: Platform, kernels: tuple[str, ...] = ()) -> Standings:
        """What is known of every kernel on every overload: of verdicts of this judge with every layer asked.

        kernels: of these alone. Raises UserError if the store is damaged.
        """
        where = f"{_OF_JUDGE} AND strict AND allowed = '' AND off = '' AND kernel = ifnull(?, kernel)"
        rows = self._rows(where, (*_judge(platform), "+".join(kernels) or None))
        found: defaultdict[tuple[str, str], Standing] = defaultdict(Standing)
        cases = [row for row in rows if row.case_id != WHOLE]
        for row in cases:
            if row.outcome != Outcome.PASS:
                found[row.kernel, row.overload].failed.setdefault(row.case_id, row.verdict)
        for row in cases:
            standing = found[row.kernel, row.overload]
            if row.outcome == Outcome.PASS and row.case_id not in standing.failed:
                standing.passed[row.case_id] = Passed(row.dtypes, row.signature, row.kind, row.variants)
        known = Standings({(tuple(kernel.split("+")), overload): s for (kernel, overload), s in found.items()})
        known.platform, known.platform_typed = platform.name, platform.typed
        known.tried = frozenset(row.kernel for row in rows if row.case_id == WHOLE)
        return known

    def accuracies(self, platform: Platform) -> dict[tuple[tuple[str, ...], str], float]:
        """By kernels and overload, the largest error of a case that passed, where it was told, in units of ATen's own.

        Raises UserError if the store is damaged.
        """
        found: dict[tuple[tuple[str, ...], str], float] = {}
        where = f"outcome = 'PASS' AND detail LIKE 'largest error %' AND {_OF_JUDGE}"
        for row in self._rows(where, _judge(platform)):
            which, error = (tuple(row.kernel.split("+")), row.overload), float(row.detail.split()[2])
            if math.isfinite(error):
                found[which] = max(found.get(which, 0.0), error)
        return found

    def _rows(self, where: str, values: tuple[Any, ...]) -> list[_Row]:
        """Return the rows that are believed, in the order in which they came.

        Raises UserError if the store is damaged.
        """
        fetched = self._fetched(f"SELECT {_SIGNED}, signed FROM verdicts WHERE {where} ORDER BY rowid", values)
        try:
            rows = [_Row(*row[:-1]) for row in fetched if self._is_believed(row)]
            for row in rows:
                Outcome(row.outcome)
        except (TypeError, ValueError) as error:
            raise self._explained(error) from error
        return rows

    def _is_believed(self, row: tuple[Any, ...]) -> bool:
        if is_signed(row[-1], *map(str, row[:-1])):
            return True
        self._warn(
            f"enable: {self._path} holds verdicts that this user's commands did not sign; they are not believed, and "
            "what is asked for is judged anew (a kernel: enable verify FILE; all: enable verify --all)"
        )
        self._warn = lambda line: None
        return False

    def _fetched(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """Raises UserError if the store is damaged."""
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        self._db.close()


def _kind(error: Exception) -> int:
    """SQLite's primary result code; 0 for an error that is not SQLite's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _judge(platform: Platform) -> tuple[str, ...]:
    """The values of `_OF_JUDGE`: what judges overloads that draw on the platform, and the others; likewise whole."""
    both = (True, False)
    return _place(platform), *(judge_version(platform, draws, whole) for draws in both for whole in both)


def _place(platform: Platform) -> str:
    return f"{platform.name} {platform.sha256}"


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))
