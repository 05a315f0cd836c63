"""Verdicts, kept: keyed by what was judged and what judged it, so that nothing is run twice."""

from __future__ import annotations

import hashlib
import platform as machine
import sqlite3
import threading
import time
from collections import defaultdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from traces import UserError
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform

_SCHEMA_VERSION = 3
_EARLIER = (1, 2)  # formats whose verdicts are of judges that are no more
PATIENCE_SECONDS = 60.0  # for another process that writes
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_SPACE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)  # a limit on file sizes, or a quota, is an I/O error
_NO_ACCESS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
_TABLE = """
CREATE TABLE IF NOT EXISTS verdicts (
    key TEXT PRIMARY KEY,       -- sha256 over the columns up to `judge`
    kernel TEXT NOT NULL,       -- sha256 of each kernel file that took part
    overload TEXT NOT NULL,
    case_id TEXT NOT NULL,
    platform TEXT NOT NULL,     -- name and sha256 of its profile, and other conditions
    judge TEXT NOT NULL,        -- versions of torch and triton, sha256 of the judge's own sources
    outcome TEXT NOT NULL,
    detail TEXT NOT NULL,
    report TEXT NOT NULL,
    layer TEXT NOT NULL,        -- the guard that spoke, and its rule
    rule TEXT NOT NULL,
    sandbox TEXT NOT NULL,      -- what confined the child
    dtypes TEXT NOT NULL,       -- floating dtypes that the case names, sorted, with commas
    seconds REAL NOT NULL,
    created REAL NOT NULL
)
"""


@cache
def judge_version() -> str:
    """Names what judges: a verdict of another torch, triton or judge is not this one's."""
    package = Path(__file__).parent
    sources = sorted((*package.glob("*.py"), *(package.parent / "traces").glob("*.py")))
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()[:16]
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "triton", "numpy"))
    return f"{versions}, python {machine.python_version()}, judge {digest}"


class VerdictStore:
    """SQLite in WAL mode; safe for the threads of one process and for several processes."""

    def __init__(self, path: Path) -> None:
        """Raises UserError if the file is no verdict store, or a newer one."""
        self._path = path
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

    @staticmethod
    def identity(
        kernels: tuple[str, ...], overload: str, case: str, platform: Platform, conditions: str = ""
    ) -> tuple[str, ...]:
        """The columns that a verdict is keyed by.

        kernels: sha256 of every kernel file that takes part. conditions: under which else it was judged.
        """
        place = f"{platform.name} {platform.sha256} {conditions}".strip()
        return ("+".join(kernels), overload, case, place, judge_version())

    def get(self, identity: tuple[str, ...]) -> Verdict | None:
        """The verdict kept under `identity`, or None. Raises UserError if the store is damaged."""
        try:
            with self._lock:
                row = self._db.execute(
                    "SELECT case_id, outcome, detail, report, layer, rule, sandbox, dtypes FROM verdicts WHERE key = ?",
                    (_key(identity),),
                ).fetchone()
            return Verdict(row[0], Outcome(row[1]), *row[2:]) if row else None
        except (sqlite3.DatabaseError, ValueError) as error:
            raise self._explained(error) from error

    def put(self, identity: tuple[str, ...], verdict: Verdict, seconds: float) -> None:
        """Keep a verdict: on the disk when this returns, never changed. Raises UserError if that cannot be."""
        told = (verdict.detail, verdict.report, verdict.layer, verdict.rule, verdict.sandbox, verdict.dtypes)
        values = (_key(identity), *identity, str(verdict.outcome), *told, seconds, time.time())
        try:
            with self._lock, self._db:
                self._db.execute(f"INSERT OR IGNORE INTO verdicts VALUES ({','.join('?' * len(values))})", values)
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def verified(self, platform: Platform, conditions: str) -> dict[tuple[tuple[str, ...], str], frozenset[str]]:
        """Floating dtypes of which every verdict of this judge is PASS, by kernels and overload (as of `identity`).

        "" stands for the cases that name none. conditions: what those of the verdicts contain. Raises UserError if the
        store is damaged.
        """
        rows = self._select("SELECT DISTINCT kernel, overload, dtypes, outcome FROM verdicts", platform, conditions)
        outcomes: defaultdict[tuple[tuple[str, ...], str], defaultdict[str, set[str]]]
        outcomes = defaultdict(lambda: defaultdict(set))
        for kernels, overload, dtypes, outcome in rows:
            for dtype in dtypes.split(","):
                outcomes[tuple(kernels.split("+")), overload][dtype].add(outcome)
        return {
            which: frozenset(d for d, o in found.items() if o == {Outcome.PASS}) for which, found in outcomes.items()
        }

    def counts(self, platform: Platform, conditions: str) -> dict[tuple[tuple[str, ...], str], tuple[int, int]]:
        """Cases that passed and cases that this judge has judged, keyed and chosen as by `verified`."""
        found: defaultdict[tuple[tuple[str, ...], str], dict[str, bool]] = defaultdict(dict)
        rows = self._select("SELECT kernel, overload, case_id, outcome FROM verdicts", platform, conditions)
        for kernels, overload, case, outcome in rows:
            cases = found[tuple(kernels.split("+")), overload]
            cases[case] = cases.get(case, True) and outcome == Outcome.PASS
        return {which: (sum(cases.values()), len(cases)) for which, cases in found.items()}

    def _select(self, columns: str, platform: Platform, conditions: str) -> list[Any]:
        """Rows of this judge's verdicts on a platform. Raises UserError if the store is damaged."""
        place = f"{platform.name} {platform.sha256} "
        where = "WHERE judge = ? AND substr(platform, 1, ?) = ? AND instr(platform, ?) > 0"
        values = (judge_version(), len(place), place, conditions)
        try:
            with self._lock:
                return self._db.execute(f"{columns} {where}", values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        self._db.close()


def _kind(error: Exception) -> int:
    """SQLite's primary result code; 0 for an error that is not SQLite's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _key(identity: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()
