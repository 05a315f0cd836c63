"""Read a verdict store that other processes may be writing, without writing to it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from traces import UserError
from verify.judging import verdicts
from verify.judging.verdicts import PATIENCE_SECONDS, VerdictStore


class VerdictReader(VerdictStore):
    """A verdict store that is opened for reading only; a query sees every verdict that is committed by then."""

    def __init__(self, path: Path) -> None:
        """Open an existing store.

        If the store has no write-ahead log, no process has it open. It is then opened as immutable, because SQLite
        would otherwise create a log and an index beside it.

        Raises:
            UserError: The file is missing, or is no verdict store.
        """
        self._path, self._warn = path, lambda line: None
        self._lock = threading.Lock()
        mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
        try:
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?{mode}", uri=True, check_same_thread=False, timeout=PATIENCE_SECONDS
            )
        except sqlite3.OperationalError as error:
            raise UserError(f"{path}: cannot be opened for reading ({error})") from error

    @property
    def is_current(self) -> bool:
        """Return True if this toolkit reads the store's format."""
        try:
            return self._format() == verdicts.SCHEMA_VERSION
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error
