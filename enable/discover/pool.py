"""Run catalogue entries in worker processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from enable.discover.entries import CatalogueEntry, flat
from traces import UserError
from traces.packaging import qualified

ENTRY_SECONDS = 60  # for compiling and running one entry; the slowest compiles in 5 s


class EntryWorker:
    """One worker process; see worker.py."""

    def __init__(self, settings: dict[str, Any], interpreted: bool) -> None:
        cache = Path(settings["directory"]) / f"cache-{os.urandom(4).hex()}"  # every entry is compiled anew
        environment = {**os.environ, "TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_FP_FUSION": "1"}
        if interpreted:
            environment["TRITON_INTERPRET"] = "1"
        elif not settings["device"]:
            environment.pop("TRITON_INTERPRET", None)  # it would leave nothing to compile
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", qualified("enable.discover.worker")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C ends it through `end`, together with the compilers that it started
        )
        self._send(settings)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises:
            UserError: The worker itself ended.
        """
        self._send(request)
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            words = self._process.stderr.read().decode(errors="replace").strip().splitlines() or ["no message"]
            raise UserError(f"the process that compiles the catalogue ended: {words[-1][:300]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _send(self, fields: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the answer will be missing
            self._process.stdin.write(json.dumps(fields).encode() + b"\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """Kill the process and everything that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


class WorkerPool:
    """Worker processes with the same settings, used as a context manager.

    Args:
        jobs: Number of processes.
        target: Fields of the target to compile for, or None.
        device: PyTorch device type to run on, or "".
        seconds: Time limit for an entry.
        interpreted: Run the entries in Triton's interpreter.
        module: Python module that makes PyTorch know the device, or "".
    """

    def __init__(
        self,
        jobs: int,
        target: dict[str, Any] | None,
        device: str,
        seconds: int = ENTRY_SECONDS,
        interpreted: bool = False,
        module: str = "",
    ) -> None:
        self._jobs, self._interpreted = jobs, interpreted
        simplest = flat("dtypes", "copy", "x").text
        self._settings = {"target": target, "device": device, "seconds": seconds, "simplest": simplest}
        self._settings["module"] = module
        self._idle: SimpleQueue[EntryWorker] = SimpleQueue()
        self._workers: list[EntryWorker] = []
        self._number = 0

    def __enter__(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="enable-discover-", ignore_cleanup_errors=True)
        self._settings["directory"] = self._directory.name
        with ExitStack() as failed:
            failed.callback(self.close)
            for _ in range(self._jobs):
                self._workers.append(EntryWorker(self._settings, self._interpreted))
                self._idle.put(self._workers[-1])
            failed.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the processes and remove their files."""
        self._end_workers()
        self._directory.cleanup()

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.end()

    def describe(self) -> dict[str, Any]:
        """Return the target and the versions in each process, or the problem that prevents compilation."""
        answers = [worker.ask({"describe": True}) for worker in self._workers]
        return answers[0]

    def run(
        self,
        entries: Iterable[CatalogueEntry],
        done: Callable[[CatalogueEntry, dict[str, Any]], None],
        timed: bool = True,
    ) -> None:
        """Run entries and pass each one's answer to `done`, from any thread."""

        def one(entry: CatalogueEntry) -> None:
            done(entry, self.ask(entry, timed))

        with ThreadPoolExecutor(self._jobs) as threads, ExitStack() as failed:
            failed.callback(self._end_workers)  # the threads that wait for answers return
            failed.callback(threads.shutdown, wait=False, cancel_futures=True)
            for future in [threads.submit(one, entry) for entry in entries]:
                future.result()
            failed.pop_all()

    def ask(self, entry: CatalogueEntry, timed: bool = True) -> dict[str, Any]:
        """Return the answer for one entry. An entry that fails in a used process is tried again in a fresh one."""
        self._number += 1
        request = {"number": self._number, "text": entry.text, "timed": timed}
        worker = self._idle.get()
        try:
            answer = worker.ask(request)
            if answer["status"] != "compiled" and not answer.get("fresh", False) and self._settings["device"]:
                answer = worker.ask(request)
        finally:
            self._idle.put(worker)
        return answer
