"""Mutation score of the judge: the share of semantic mutants of the library's kernels that it rejects.

    python -m benchmarks.kernel_mutants --out mutants.jsonl [--count 2000] [--workers 14] [--budget 520]
    python -m benchmarks.kernel_mutants --report mutants.jsonl

Records are appended to the file, and a second run continues. Mutants that are not finished when the budget ends are
judged again by the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from signal import SIGTERM, signal

from benchmarks.kernel_mutants.changes import CLASSES
from benchmarks.kernel_mutants.judging import FIRST_SECONDS, UNDECIDED, Settings, work
from benchmarks.kernel_mutants.program import kernel_files
from benchmarks.kernel_mutants.report import read_records, table
from verify.judging.stages import MAX_EXTENDED

END_SECONDS = 5.0  # time for a worker to end its children


def main() -> None:
    """Judge mutants, or print the table of a file."""
    signal(SIGTERM, lambda *_: sys.exit(1))  # so that the workers are ended, too
    options = parsed()
    if options.report is not None:
        print(table(read_records(options.report)))
        return
    files = [path for path in kernel_files() if not options.only or path.stem in options.only]
    settings = Settings(options.seed, options.platform, options.seconds, tuple(files), tuple(options.kinds))
    settings = replace(settings, limit=options.limit, sift_after=options.sift_after)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = {record["number"] for record in read_records(options.out)}
    numbers = (n for n in range(options.first, options.first + options.count) if n not in done)
    Pool(settings, options.workers, options.out).run(numbers, time.monotonic() + options.budget)
    print(table(read_records(options.out)))


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("kernel-mutants.jsonl"), help="JSON lines, one per mutant")
    parser.add_argument("--report", type=Path, help="print the table of this file, and judge nothing")
    parser.add_argument("--count", type=int, default=2000, help="numbers to draw")
    parser.add_argument("--first", type=int, default=0, help="first number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--platform", default="sim")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120, help="time limit for a mutant's trial")
    parser.add_argument("--limit", type=int, default=MAX_EXTENDED, help="extended cases for each overload")
    parser.add_argument("--sift-after", type=float, default=FIRST_SECONDS, help="seconds until it is compared by PTX")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which the run ends")
    parser.add_argument("--only", nargs="*", default=(), help="kernel files by name, such as cumsum; default: all")
    parser.add_argument("--kinds", nargs="*", default=tuple(CLASSES), choices=tuple(CLASSES))
    return parser.parse_args()


class Pool:
    """Worker processes; each judges one mutant at a time."""

    def __init__(self, settings: Settings, workers: int, out: Path) -> None:
        self._settings, self._workers, self._out = settings, workers, out
        self._context = get_context("spawn")
        self._busy: dict[Connection, int] = {}  # number that a worker judges
        self._processes: dict[Connection, SpawnProcess] = {}

    def run(self, numbers: Iterator[int], end: float) -> None:
        """Judge the mutants with these numbers, until all are judged or the time is over."""
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        try:
            for number in numbers:
                self._start(number)
                if len(self._busy) == self._workers:
                    break
            while self._busy and time.monotonic() < end:
                for connection in wait(list(self._busy), max(0.0, end - time.monotonic())):
                    self._finish(connection)  # type: ignore[arg-type]
                    following = next(numbers, None)
                    if following is not None:
                        self._give(connection, following)  # type: ignore[arg-type]
        finally:
            self._close()

    def _start(self, number: int) -> None:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=work, args=(theirs, self._settings))
        process.start()
        theirs.close()
        self._processes[ours] = process
        self._give(ours, number)

    def _give(self, connection: Connection, number: int) -> None:
        if connection in self._processes:
            connection.send(number)
            self._busy[connection] = number
        else:
            self._start(number)

    def _finish(self, connection: Connection) -> None:
        """Append the record of a worker, or that its process died."""
        number = self._busy.pop(connection)
        try:
            record = connection.recv()
        except (EOFError, OSError):
            del self._processes[connection]
            record = {"number": number, "kind": "", "file": "", "origin": "", "function": "", "change": str(number)}
            record |= {"state": UNDECIDED, "detail": "the worker died"}
        with self._out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        progress = f"{number} {record['state']} {record.get('seconds', '')} {record['file']} {record['kind']}"
        print(progress, record.get("outcome", ""), record.get("layer", ""), file=sys.stderr, flush=True)

    def _close(self) -> None:
        """End the workers, which end their children."""
        for process in self._processes.values():
            process.terminate()
        until = time.monotonic() + END_SECONDS
        for process in self._processes.values():
            process.join(max(0.0, until - time.monotonic()))
            process.kill()


if __name__ == "__main__":
    main()
