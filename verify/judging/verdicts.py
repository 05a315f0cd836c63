"""Store verdicts, keyed by the kernel, the case and the judge's versions, so that nothing is run twice.

A query returns the strongest known verdict. A kernel that failed a case with every layer on fails it for every
command, and a weaker pass hides nothing.
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
from traces.program import program_label, program_name
from verify.judging import layers
from verify.judging.conditions import Conditions
from verify.judging.standings import Passed, Standing, Standings
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform
from verify.signing import is_signed, sign

WHOLE = "whole"  # replaces the case id: the kernel file passed a complete trial
SCHEMA_VERSION = 8
_EARLIER = (1, 2, 3, 4, 5, 6, 7)  # formats that are not read; their verdicts are dropped
PATIENCE_SECONDS = 60.0  # time to wait for another process that writes
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# a limit on file sizes, or a quota, is reported as an I/O error
_NO_SPACE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
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
class Identity:
    """Key of a verdict; `kernels` is as in Job.kernels."""

    kernels: tuple[str, ...]
    overload: str
    case: str
    platform: Platform
    conditions: Conditions = Conditions()

    @property
    def columns(self) -> tuple[str | int, ...]:
        """Values for the key columns in the table."""
        conditions = self.conditions
        encoded = (
            ",".join(sorted(conditions.allowed)),
            int(conditions.strict),
            ",".join(sorted(conditions.off)),
            int(conditions.repeated),
        )
        platform = _platform_key(self.platform)
        judge = judge_version(self.platform, layers.draws(self.overload), self.case == WHOLE)
        return ("+".join(self.kernels), self.overload, self.case, platform, *encoded, conditions.sandbox, judge)

    @property
    def key(self) -> str:
        return hashlib.sha256("\0".join(map(str, self.columns)).encode()).hexdigest()


class _Row(NamedTuple):
    """Signed columns of a verdict."""

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
        evidence = (self.detail, self.report, self.layer, self.rule, self.sandbox)
        facts = (self.dtypes, self.signature, self.kind, self.variants, self.reached)
        return Verdict(self.case_id, Outcome(self.outcome), *evidence, *facts)


@cache
def judge_version(platform: Platform, draws: bool = True, whole: bool = False) -> str:
    """Return the judge's versions on a platform: torch, triton and the judging layers.

    A verdict from other versions does not count.

    Args:
        platform: The platform.
        draws: True for overloads that may draw random numbers.
        whole: True for a whole trial.
    """
    return f"{_machine()}, judge: {layers.versions(platform, draws, whole)}"


@cache
def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "triton", "numpy"))
    return f"{packages}, python {machine.python_version()}"


class VerdictStore:
    """SQLite store in WAL mode, safe for threads and for several processes.

    Verdicts that this user's commands did not sign (verify/signing.py) are ignored, and the cases are judged
    again.
    """

    def __init__(self, path: Path, warn: Callable[[str], None] = lambda line: None) -> None:
        """Open or create a store.

        Args:
            path: Store file.
            warn: Function that is called once, with one line, if a verdict is ignored.

        Raises:
            UserError: The file is no verdict store, or has a newer format.
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
            if self._format() != SCHEMA_VERSION:
                self._create()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise self._explained(error) from error
        except UserError:
            self._db.close()
            raise

    def _write_ahead(self) -> None:
        """Switch to WAL mode, and retry while the store is busy, because SQLite does not wait here."""
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
        """Create the table unless another process has done so; raise UserError for an unknown format."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            number = self._format()
            if number not in (0, *_EARLIER, SCHEMA_VERSION):
                raise UserError(
                    f"{self._path}: verdicts of format {number}, this toolkit reads {SCHEMA_VERSION}; remove the file"
                )
            if number in _EARLIER:
                self._db.execute("DROP TABLE verdicts")
            self._db.execute(_TABLE)
            self._db.execute(_INDEX)
            self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def _explained(self, error: Exception) -> UserError:
        """Return an error that explains the failure and its remedy; only damage is a reason to remove the file."""
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
        """Return the strongest verdict known under conditions that decide these; None if there is none.

        If all layers are on, a failure under any conditions with all layers on takes precedence. Otherwise it is
        a pass under conditions that cover these.

        Raises:
            UserError: The store is damaged.
        """
        kernels, overload, case, platform, *_, judge = identity.columns
        rows = self._rows(
            "case_id = ? AND kernel = ? AND overload = ? AND platform = ? AND judge = ?",
            (case, kernels, overload, platform, judge),
        )
        conditions, passed = identity.conditions, None
        for stored_conditions, verdict in ((row.conditions, row.verdict) for row in rows):
            if stored_conditions == conditions or (
                verdict.outcome is Outcome.PASS and stored_conditions.covers(conditions)
            ):
                passed = passed or verdict
            if verdict.outcome is not Outcome.PASS and (
                stored_conditions == conditions or (stored_conditions.full and conditions.full)
            ):
                return verdict
        return passed

    def put(self, identity: Identity, verdict: Verdict, seconds: float) -> None:
        """Store a verdict durably, and never change it; raise UserError if it cannot be written."""
        evidence = (verdict.detail, verdict.report, verdict.layer, verdict.rule)
        facts = (verdict.dtypes, verdict.signature, verdict.kind, verdict.variants, verdict.reached)
        row = (identity.key, *identity.columns, str(verdict.outcome), *evidence, *facts)
        values = (*row, sign(*map(str, row)), seconds, time.time())
        try:
            with self._lock, self._db:
                stored = self._db.execute(f"SELECT {_SIGNED}, signed FROM verdicts WHERE key = ?", (identity.key,))
                if not any(self._is_believed(row_stored) for row_stored in stored):
                    self._db.execute(f"REPLACE INTO verdicts VALUES ({','.join('?' * len(values))})", values)
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def put_whole(self, kernel: str, overload: str, platform: Platform, sandbox: str, detail: str) -> None:
        """Record that a kernel file passed a complete trial.

        Args:
            kernel: Kernel file key.
            overload: First overload that it lists.
            platform: Trial platform.
            sandbox: How the children were confined.
            detail: One line.
        """
        identity = Identity((kernel,), overload, WHOLE, platform, Conditions(sandbox=sandbox))
        self.put(identity, Verdict(WHOLE, Outcome.PASS, detail), 0.0)

    def standings(self, platform: Platform, kernels: tuple[str, ...] = ()) -> Standings:
        """Return every kernel's standing for every overload, from this judge's verdicts with all layers on.

        Args:
            platform: The platform.
            kernels: Restrict the result to these kernels.

        Raises:
            UserError: The store is damaged.
        """
        condition = f"{_OF_JUDGE} AND strict AND allowed = '' AND off = '' AND kernel = ifnull(?, kernel)"
        rows = self._rows(condition, (*_judge(platform), "+".join(kernels) or None))
        standings: defaultdict[tuple[str, str], Standing] = defaultdict(Standing)
        cases = [row for row in rows if row.case_id != WHOLE]
        for row in cases:
            if row.outcome != Outcome.PASS:
                standings[row.kernel, row.overload].failed.setdefault(row.case_id, row.verdict)
        for row in cases:
            standing = standings[row.kernel, row.overload]
            if row.outcome == Outcome.PASS and row.case_id not in standing.failed:
                standing.passed[row.case_id] = Passed(row.dtypes, row.signature, row.kind, row.variants)
        result = Standings({(tuple(kernel.split("+")), overload): s for (kernel, overload), s in standings.items()})
        result.platform, result.platform_typed = platform.name, platform.typed
        result.tried = frozenset(row.kernel for row in rows if row.case_id == WHOLE)
        return result

    def accuracies(self, platform: Platform) -> dict[tuple[tuple[str, ...], str], float]:
        """Return the largest recorded error in a passed case by kernels and overload, relative to ATen's own error.

        Raises:
            UserError: The store is damaged.
        """
        errors: dict[tuple[tuple[str, ...], str], float] = {}
        condition = f"outcome = 'PASS' AND detail LIKE 'largest error %' AND {_OF_JUDGE}"
        for row in self._rows(condition, _judge(platform)):
            key, error = (tuple(row.kernel.split("+")), row.overload), float(row.detail.split()[2])
            if math.isfinite(error):
                errors[key] = max(errors.get(key, 0.0), error)
        return errors

    def _rows(self, where: str, values: tuple[Any, ...]) -> list[_Row]:
        """Return the rows with valid signatures, in insertion order.

        Raises:
            UserError: The store is damaged.
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
            f"{program_label()}: {self._path} holds verdicts that this user's commands did not sign; they are not "
            f"believed, and kernels are judged again when needed (one: {program_name()} verify FILE; "
            f"all: {program_name()} verify --all)"
        )
        self._warn = lambda line: None
        return False

    def _fetched(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """Return a query's rows; raise UserError if the store is damaged."""
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        self._db.close()


def _kind(error: Exception) -> int:
    """Return SQLite's primary result code, or 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _judge(platform: Platform) -> tuple[str, ...]:
    """Return the parameters for `_OF_JUDGE`.

    They are the platform and the judge's versions for overloads that draw or not, and for whole trials or cases.
    """
    both = (True, False)
    return _platform_key(platform), *(judge_version(platform, draws, whole) for draws in both for whole in both)


def _platform_key(platform: Platform) -> str:
    return f"{platform.name} {platform.sha256}"


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))
