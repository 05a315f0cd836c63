"""Run a suite in worker processes that may crash or hang, until it is done or out of time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from enable.conformance.options import SuiteOptions
from enable.conformance.results import Line, append, begin
from enable.conformance.worker import LOST
from enable.options import CACHE_VARIABLE
from enable.progress import say, show_progress
from enable.serve.native import native_way
from enable.workspace import Workspace
from traces import UserError, jsonable
from traces.packaging import IMPORT_ROOT, qualified
from traces.program import program_label, program_name

GRACE = 10.0  # seconds after the deadline before a worker is killed
STARTING = 600.0  # seconds for a worker to import PyTorch, collect tests, or make an item's samples
POLL = 0.3  # seconds between polls of the workers
STARTS = 50  # at most this many starts per worker
DEATHS = 4  # after this many fatal checks an item is abandoned


@dataclass
class SuiteRun:
    """A run of a suite.

    Attributes:
        options: Options of the suite.
        results: File with the results.
        seconds: Time limit for the whole run.
        workers: Number of processes.
        timeout: Seconds that one call, or one test, may take.
        resume: Continue the results file.
        again: True if a worker can finish an item on which another died.
        command: Returns the command that starts a worker, given its directory and index.
    """

    options: SuiteOptions
    results: Path
    seconds: float
    workers: int
    timeout: float
    resume: bool = False
    again: bool = True
    command: Callable[[Path, int], list[str]] = field(
        default=lambda directory, index: [
            sys.executable,
            "-m",
            qualified("enable.conformance.worker"),
            str(directory),
            str(index),
        ]
    )

    def run(self) -> bool:
        """Return True if every item was run, False if time ran out first."""
        self.results.parent.mkdir(parents=True, exist_ok=True)
        with open(self.results.with_suffix(".lock"), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{self.results}: another run writes it; wait for that, or name another --workspace"
                ) from None
            return self._run()

    def _run(self) -> bool:
        """Run the workers to the end. Raise UserError if none could start or no item matches."""
        before = self.results.read_bytes() if self.results.is_file() else None
        done = begin(self.results, self.options, self.resume)
        directory = self.results.with_suffix(".run")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        deadline = time.time() + self.seconds
        if self.options.device == "cuda":  # build it once here, not in each worker
            native_way("cuda", None, Workspace(Path(self.options.workspace)).native)
        shared = {"options": jsonable(self.options), "results": str(self.results.absolute())}
        (directory / "run.json").write_text(json.dumps({**shared, "deadline": deadline, "done": sorted(done)}))
        (directory / "next").write_text("0")
        workers = [Worker(self, directory.absolute(), index, deadline) for index in range(self.workers)]
        began = self._lines()
        try:
            with show_progress(f"conformance {self.options.suite} on {self.options.device}") as work:
                while [worker for worker in workers if worker.look()]:
                    time.sleep(POLL)
                    work.total, work.done = self._total(directory)[0], self._lines() - began
                    work.now(f"{sum(worker.died for worker in workers)} deaths")
        finally:
            for worker in workers:
                worker.kill()
        total, matching = self._total(directory)
        left = (total or 0) - (self._lines() - began)
        broken = next((worker.words for worker in workers if worker.broken), "")
        if broken and self._lines() == began:
            raise UserError(f"no worker of {self.options.suite} could start: {broken}; try: {program_name()} doctor")
        shutil.rmtree(directory, ignore_errors=True)
        if matching == 0 and self.options.shard[1] == 1:
            self.results.write_bytes(before) if before is not None else self.results.unlink()
            hint = f"see: {program_name()} conformance {self.options.suite} --help"
            raise UserError(f"--ops {self.options.ops}: {self.options.suite} has no such item; {hint}")
        return left <= 0

    def _total(self, directory: Path) -> tuple[int | None, int | None]:
        """Return the number of items to run and the number that `--ops` and `--shard` select; None if unknown."""
        with contextlib.suppress(OSError, ValueError):
            left, matching = (directory / "total").read_text().split()
            return int(left), int(matching)
        return None, None

    def _lines(self) -> int:
        """Return the number of complete items in the results."""
        return self.results.read_bytes().count(b'"done": true')


class Worker:
    """A worker process, which is restarted if it dies."""

    def __init__(self, run: SuiteRun, directory: Path, index: int, deadline: float) -> None:
        self._run, self._directory, self._index, self._deadline = run, directory, index, deadline
        self.died, self.broken, self.words, self._without = 0, False, "", dict[str, list[str]]()
        self._over = False
        self._start()

    def _start(self, item: str = "") -> None:
        """Start the process; `item` is an item to finish first."""
        command = self._run.command(self._directory, self._index)
        if item:
            command.append(json.dumps({"item": item, "without": self._without[item]}))
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        paths = [str(IMPORT_ROOT), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
        # absolute paths, because a worker runs in another directory
        env["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, paths))
        if cache := env.get(CACHE_VARIABLE):
            env[CACHE_VARIABLE] = str(Path(cache).absolute())
        if self._run.options.device == "cpu":
            env["TRITON_INTERPRET"] = "1"
        self._log = self._directory / f"log-{self._index}"
        with contextlib.suppress(FileNotFoundError):
            (self._directory / f"now-{self._index}").unlink()
        self._began = time.time()
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env, cwd=self._directory,
                start_new_session=True,
            )  # fmt: skip

    def look(self) -> bool:
        """Return True if the worker is running; restart it after a crash or timeout."""
        if self._over:
            return False
        status, now, note = self._process.poll(), time.time(), self._note()
        if status is None and now > self._deadline + GRACE:
            self.kill()
            self._over = True
        elif status is None:
            limit = self._run.timeout if note and note["phase"] in ("native", "ours") else STARTING
            if now - (note["at"] if note else self._began) > limit:
                self.kill()
                self._after(note, "TIMEOUT", f"ran for more than {limit:.0f} s")
        elif status == 0:
            self._over = True
        else:
            cause = f"signal {-status}" if status < 0 else f"exit status {status}"
            text = note["message"] if note and status == LOST else f"{cause}: {self._last_words()}"
            self._after(note, "CRASH", text)
        return not self._over

    def _after(self, note: dict[str, Any] | None, kind: str, detail: str) -> None:
        """Record the cause of the death and continue after it."""
        self.died += 1
        self.words = detail
        if note is None or not note["item"] or note["phase"] == "finished" or self.died > STARTS:
            self._over = self.broken = True
            return
        item, check, label = note["item"], note["check"], note["label"]
        without = self._without.setdefault(item, [])
        without.append(check)  # the check's other calls are likely to end the same way
        rest = bool(check) and self._run.again and len(without) < DEATHS
        line = Line(item, done=not rest)
        if note["phase"] == "native":
            line.count(check, "samples", "native")  # PyTorch crashes natively, too
        else:
            name = check or note["phase"]
            line.count(name, "samples", "failed")
            line.failures.append({"check": name, "label": label, "kind": kind, "detail": detail[:400], "served": []})
        append(self._run.results, line)
        say(f"{program_label()}: {item} [{check or note['phase']}] {label}: {kind} ({note['phase']}): {detail[:160]}")
        if time.time() > self._deadline - GRACE:
            self._over = True
        else:
            self._start(item if rest else "")

    def _note(self) -> dict[str, Any] | None:
        """Return the worker's current position, or None."""
        try:
            note: dict[str, Any] = json.loads((self._directory / f"now-{self._index}").read_text())
        except (OSError, ValueError):
            return None
        return note

    def _last_words(self) -> str:
        """Return the end of the log, or the part about a fatal Python error."""
        text = self._log.read_text(errors="replace")[-20_000:]
        fatal = text.rpartition("Fatal Python error:")[2].split("Extension modules")[0]
        return " ".join((fatal if "Fatal Python error:" in text else text[-400:]).split())[:400]

    def kill(self) -> None:
        """Kill the process and its children."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()
