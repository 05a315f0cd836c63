"""What is done with a model, by commands that a user would type: each a process, so that no model ends the survey."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from enable.workspace import Workspace
from traces.packaging import qualified

STAGES = ("capture", "verify", "coverage", "run")


@dataclass
class ModelRow:
    """A model and what came of it. found: by stage, what its command printed as JSON; errors: the line that it ended
    with instead. typed: the commands. seconds: that they took."""

    name: str
    target: str
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def recorded(self) -> bool:
        return "capture" in self.found and not self.found["capture"]["errors"]

    @property
    def replayed(self) -> bool:
        """Whether every stored call gives the recorded bits again, or, of a GPU's sums in any order, what is close."""
        return bool(self.found.get("verify", {}).get("passed"))

    @property
    def missing(self) -> list[str]:
        """Overloads that need a kernel and are not covered, but those for CPUs alone."""
        rows = self.found.get("coverage", {}).get("rows", [])
        needed = [row for row in rows if row["state"] not in ("PASS", "none needed")]
        return [row["overload"] for row in needed if not row.get("of_cpus")]

    @property
    def covered(self) -> bool:
        return "coverage" in self.found and not self.missing

    @property
    def trained(self) -> bool:
        """Whether every step was as near to the CPU's as rounding explains, with no operator run elsewhere."""
        found = self.found.get("run", {})
        return bool(found.get("passed") and found.get("reference_loss"))


class Commands:
    """Runs commands of this program, several at once; `close` ends those that run."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._live: set[subprocess.Popen[str]] = set()
        self.closed = False

    def close(self) -> None:
        """End what runs; what is begun later does not begin."""
        with self._lock:
            self.closed = True
            for process in self._live:
                process.terminate()

    def run(self, row: ModelRow, stage: str, words: list[str]) -> bool:
        """Put what the command prints into the row. Returns whether it printed a result, whatever its status."""
        row.typed[stage] = self._workspace.command(*words)
        started = time.monotonic()
        status, out, told = self._ended(["--workspace", str(self._workspace.root), *words, "--json"])
        row.seconds[stage] = round(time.monotonic() - started, 1)
        try:
            row.found[stage] = json.loads(out)
        except ValueError:
            row.errors[stage] = _last_line(told) or f"ended with status {status} and said nothing"
            return False
        return True

    def _ended(self, words: list[str]) -> tuple[int, str, str]:
        with self._lock:
            if self.closed:
                return -1, "", "interrupted"
            process = subprocess.Popen(
                [sys.executable, "-m", qualified("enable"), *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self._live.add(process)
        out, told = process.communicate()
        with self._lock:
            self._live.discard(process)
        return process.returncode, out, told


def survey_model(
    row: ModelRow, words: list[str], trace: Path, how: dict[str, str], programs: Commands, began: Callable[[str], None]
) -> ModelRow:
    """Record a model, replay the trace on ATen, judge the kernels on it, and train with them; what needs a stage that
    failed is left out. words: target and settings. how: `device`, `platform`, `steps` and `library`.
    began: told of each stage."""
    where = ["--platform", how["platform"], *(["--library", how["library"]] if how["library"] else [])]
    library = ["--library", how["library"]] if how["library"] else []
    commands = {
        "capture": ["capture", *words, "--device", how["device"], "--out", str(trace), "--force"],
        "verify": ["trace", "verify", str(trace)],
        "coverage": ["coverage", str(trace), *where],
        "run": ["run", *words, "--device", how["device"], "--steps", how["steps"], "--compare", *library],
    }
    for stage in STAGES:
        began(f"{row.name}: {stage}")
        if not programs.run(row, stage, commands[stage]) and stage in ("capture", "coverage"):
            break
    return row


def _last_line(told: str) -> str:
    """The error that a command ended with, without its name."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return lines[-1].removeprefix("enable: ") if lines else ""
