"""What a survey has ended, kept until all of it is: one that is interrupted goes on from there."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from enable.survey.stages import ModelRow
from traces.format import write_durably


class Kept:
    """Rows in a file, a line each, with what they are the result of. For any number of threads."""

    def __init__(self, path: Path, how: Mapping[str, str]) -> None:
        """how: what all models are looked at with. A line that was cut off is no row."""
        self._path, self._how, self._lock = path, dict(how), threading.Lock()
        self._rows: dict[str, ModelRow] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            try:
                told = json.loads(line)
                self._rows[told["of"]] = ModelRow(**told["row"])
            except (ValueError, KeyError, TypeError):
                continue

    def row(self, name: str, words: list[str]) -> ModelRow | None:
        """That of a model, if it was ended with the same settings."""
        return self._rows.get(self._of(name, words))

    def add(self, words: list[str], row: ModelRow) -> None:
        """Keep a row that has ended."""
        of = self._of(row.name, words)
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self._rows[of] = row
            file.write(f"\n{_line(of, row)}")  # after a line that was cut off, too

    def forget(self, models: Mapping[str, list[str]]) -> None:
        """All of these, by name and words, have ended: the next survey looks at them anew. Others stay."""
        for name, words in models.items():
            self._rows.pop(self._of(name, words), None)
        if self._rows:
            write_durably(self._path, (f"{_line(of, row)}\n".encode() for of, row in self._rows.items()))
        else:
            self._path.unlink(missing_ok=True)

    def _of(self, name: str, words: list[str]) -> str:
        return json.dumps([name, words, self._how])


def _line(of: str, row: ModelRow) -> str:
    return json.dumps({"of": of, "row": asdict(row)})
