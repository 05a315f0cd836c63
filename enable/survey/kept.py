"""Store a survey's finished rows until the survey is complete, so that an interrupted survey can resume."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from enable.survey.stages import ModelRow
from traces.format import write_durably


class Kept:
    """Finished rows in a JSON Lines file, keyed by model and settings. Safe to use from several threads."""

    def __init__(self, path: Path, how: Mapping[str, str]) -> None:
        """Read the rows; a line that cannot be parsed is skipped, because a killed survey may have written only a part.

        Args:
            path: File with the rows.
            how: Settings that all models share.
        """
        self._path, self._how, self._lock = path, dict(how), threading.Lock()
        self._rows: dict[str, ModelRow] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            try:
                entry = json.loads(line)
                self._rows[entry["of"]] = ModelRow(**entry["row"])
            except (ValueError, KeyError, TypeError):
                continue

    def row(self, name: str, words: list[str]) -> ModelRow | None:
        """Return a model's row, or None if it has not finished with the same settings."""
        return self._rows.get(self._of(name, words))

    def add(self, words: list[str], row: ModelRow) -> None:
        """Store a finished row."""
        key = self._of(row.name, words)
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self._rows[key] = row
            file.write(f"\n{_line(key, row)}")  # the leading newline separates it from an incomplete line

    def forget(self, models: Mapping[str, list[str]]) -> None:
        """Drop the rows for these models, because the survey is complete; rows for other models stay."""
        for name, words in models.items():
            self._rows.pop(self._of(name, words), None)
        if self._rows:
            write_durably(self._path, (f"{_line(of, row)}\n".encode() for of, row in self._rows.items()))
        else:
            self._path.unlink(missing_ok=True)

    def _of(self, name: str, words: list[str]) -> str:
        """Return the key for a row: name, words and shared settings as JSON."""
        return json.dumps([name, words, self._how])


def _line(of: str, row: ModelRow) -> str:
    """Return the line for a row."""
    return json.dumps({"of": of, "row": asdict(row)})
