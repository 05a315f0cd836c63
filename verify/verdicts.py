"""Verdicts, kept: keyed by what was judged and what judged it, so that nothing is run twice."""

from __future__ import annotations

import hashlib
import platform as machine
import sqlite3
import threading
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path

from traces import UserError
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform

_SCHEMA_VERSION = 2
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
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=60)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
            if found == 1:  # verdicts of an earlier judge, which this one asks for no more
                self._db.execute("DROP TABLE verdicts")
            elif found not in (0, _SCHEMA_VERSION):
                raise UserError(
                    f"{path}: verdicts of format {found}, this toolkit reads {_SCHEMA_VERSION}; remove the file"
                )
            self._db.execute(_TABLE)
            self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")
            self._db.commit()
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> UserError:
        if "locked" in str(error):
            return UserError(f"{self._path}: in use by another process; wait for it or stop it")
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
                    "SELECT case_id, outcome, detail, report, layer, rule, sandbox FROM verdicts WHERE key = ?",
                    (_key(identity),),
                ).fetchone()
            return Verdict(row[0], Outcome(row[1]), *row[2:]) if row else None
        except (sqlite3.DatabaseError, ValueError) as error:
            raise self._damaged(error) from error

    def put(self, identity: tuple[str, ...], verdict: Verdict, seconds: float) -> None:
        """Keep a verdict; it is on the disk when this returns. Raises UserError if the store is damaged or in use."""
        told = (str(verdict.outcome), verdict.detail, verdict.report, verdict.layer, verdict.rule, verdict.sandbox)
        values = (_key(identity), *identity, *told, seconds, time.time())
        try:
            with self._lock, self._db:
                self._db.execute(f"INSERT OR REPLACE INTO verdicts VALUES ({','.join('?' * len(values))})", values)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def close(self) -> None:
        self._db.close()


def _key(identity: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()
