"""Run a survey's stages for one model, each as a command in its own process.

A crash in a model therefore ends a stage and not the survey. A user can type the same commands.
"""

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
from traces.program import program_label

STAGES = ("capture", "verify", "coverage", "run")


@dataclass
class ModelRow:
    """A model and its results.

    Attributes:
        name: Name.
        target: Model to capture.
        found: Each stage's JSON output.
        errors: Last stderr line for each stage that printed no JSON.
        typed: Each stage's command.
        seconds: Each stage's duration in seconds.
    """

    name: str
    target: str
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def recorded(self) -> bool:
        """Return True if the model was recorded without errors."""
        return "capture" in self.found and not self.found["capture"]["errors"]

    @property
    def replayed(self) -> bool:
        """Return True if every stored call reproduces the recorded bits, or close values for GPU sums in any order."""
        return bool(self.found.get("verify", {}).get("passed"))

    @property
    def missing(self) -> list[str]:
        """Return the overloads that need a kernel and are not covered, except overloads that exist only for CPUs."""
        rows = self.found.get("coverage", {}).get("rows", [])
        needed = [row for row in rows if row["state"] not in ("PASS", "none needed")]
        return [row["overload"] for row in needed if not row.get("of_cpus")]

    @property
    def covered(self) -> bool:
        """Return True if coverage was measured and no overload is missing."""
        return "coverage" in self.found and not self.missing

    @property
    def trained(self) -> bool:
        """Return True if every training step matched the CPU within rounding, and no operator ran elsewhere."""
        result = self.found.get("run", {})
        return bool(result.get("passed") and result.get("reference_loss"))


class Commands:
    """Runs commands in child processes, several at once; `close` terminates those that are running."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._live: set[subprocess.Popen[str]] = set()
        self.closed = False

    def close(self) -> None:
        """Terminate the running commands, and refuse new ones."""
        with self._lock:
            self.closed = True
            for process in self._live:
                process.terminate()

    def run(self, row: ModelRow, stage: str, words: list[str]) -> bool:
        """Run a command and store its output in the row.

        Returns:
            True if the command printed JSON, regardless of its exit status.
        """
        row.typed[stage] = self._workspace.command(*words)
        started = time.monotonic()
        status, out, errors = self._ended(["--workspace", str(self._workspace.root), *words, "--json"])
        row.seconds[stage] = round(time.monotonic() - started, 1)
        try:
            row.found[stage] = json.loads(out)
        except ValueError:
            row.errors[stage] = _last_line(errors) or f"ended with status {status} and said nothing"
            return False
        return True

    def _ended(self, words: list[str]) -> tuple[int, str, str]:
        """Run a command, and return its exit status, stdout and stderr."""
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
        out, errors = process.communicate()
        with self._lock:
            self._live.discard(process)
        return process.returncode, out, errors


def survey_model(
    row: ModelRow, words: list[str], trace: Path, how: dict[str, str], programs: Commands, began: Callable[[str], None]
) -> ModelRow:
    """Record a model, replay the trace on ATen, judge the kernels on it, and train with them.

    If `capture` or `coverage` fails, the later stages are skipped.

    Args:
        row: Row that receives the results.
        words: Target and settings.
        trace: Path for the trace.
        how: `device`, `platform`, `steps` and `library`.
        programs: Runs the commands.
        began: Callback that receives a message at the start of each stage.
    """
    platform_words = ["--platform", how["platform"], *(["--library", how["library"]] if how["library"] else [])]
    library_words = ["--library", how["library"]] if how["library"] else []
    commands = {
        "capture": ["capture", *words, "--device", how["device"], "--out", str(trace), "--force"],
        "verify": ["trace", "verify", str(trace)],
        "coverage": ["coverage", str(trace), *platform_words],
        "run": ["run", *words, "--device", how["device"], "--steps", how["steps"], "--compare", *library_words],
    }
    for stage in STAGES:
        began(f"{row.name}: {stage}")
        if not programs.run(row, stage, commands[stage]) and stage in ("capture", "coverage"):
            break
    return row


def _last_line(text: str) -> str:
    """Return the last line on stderr without the program's name."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix(f"{program_label()}: ") if lines else ""
