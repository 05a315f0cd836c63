"""Kill `enable verify --all` with SIGKILL at random moments, again and again, and compare with a run left alone.

    python -m benchmarks.crash_safety [--kills 200] [--seed 1]

After each kill: no process is left of it, the store is sound, and verdicts kept before are untouched. The command is
started again in the same workspace until it ends by itself; then its answer and its store must be those of the run left
alone, and the next workspace begins. Commands are forked out of a process that has imported what they need: importing
takes longer than judging a small library.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from generate.kernel_library import KERNELS
from verify.sandbox.processes import descendants

ROOT = Path(__file__).resolve().parent.parent

SEED = "7"  # of the extended cases
END_SECONDS = 60.0  # for what a killed command has started to end
ALONE_SECONDS = 300.0


class Commands:
    """A context manager that forks `enable` commands."""

    def __enter__(self) -> Self:
        words = [sys.executable, "-m", "benchmarks.crash_safety", "--serve"]
        path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self._server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=path)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.communicate()

    def start(self, arguments: list[str], place: Path) -> int:
        """The pid of a command, leader of a process group. It writes `stdout`, `stderr` and `tmp/` in `place`."""
        (place / "tmp").mkdir(parents=True, exist_ok=True)
        return self._ask({"start": arguments, "place": str(place)})

    def wait(self, pid: int) -> int:
        """The exit status of a command, negative if a signal ended it."""
        return os.waitstatus_to_exitcode(self._ask({"wait": pid}))

    def _ask(self, request: dict[str, Any]) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


def serve() -> None:
    """Be that process: answer lines of JSON until stdin ends."""
    import torch.testing._internal.common_methods_invocations  # noqa: F401 - takes 2 s

    import enable.cover.verifier  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitpid(request["wait"], 0)[1]
        else:
            answer = os.fork()
            if not answer:
                _command(request["start"], Path(request["place"]))
        print(answer, flush=True)


def _command(arguments: list[str], place: Path) -> NoReturn:
    from enable.cli import main

    os.setpgid(0, 0)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(place / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ["TMPDIR"] = str(place / "tmp")
    tempfile.tempdir = None
    status: Any = 1
    try:
        main(arguments)
    except SystemExit as end:
        status = end.code
    except Exception:  # noqa: BLE001 - told as a command would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status or 0))


def library(directory: Path) -> Path:
    """A library of a kernel that is right and one that is wrong, for float32 alone."""
    group = directory / "pointwise"
    group.mkdir(parents=True)
    for name in ("neg", "exp"):
        source = (KERNELS / "pointwise" / f"{name}.py").read_text()
        source = re.sub(r"DTYPES = \(.*?\)", 'DTYPES = ("float32",)', source, flags=re.DOTALL)
        (group / f"{name}.py").write_text(source.replace("return tl.exp(", "return 1.001 * tl.exp("))
    return directory


def arguments_of(base: Path, workspace: Path, *more: str) -> list[str]:
    """The words after `enable`."""
    usual = ["--library", str(base), "--limit", "8", "--json", "--exhaustive"]
    return ["--workspace", str(workspace), "verify", "--all", "--seed", SEED, *usual, *more]


def verdicts_of(workspace: Path) -> dict[str, tuple[Any, ...]]:
    """What is kept, by key: the columns that say what was judged and what came of it, then when. Checks the file."""
    path = workspace / "verdicts.sqlite"
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path, timeout=60)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'verdicts'").fetchone():
            return {}
        told = "key, kernel, overload, case_id, platform, judge, outcome, detail, report, layer, rule, sandbox, created"
        return {row[0]: row[1:] for row in db.execute(f"SELECT {told} FROM verdicts")}


def count(workspace: Path) -> int:
    """How many verdicts are kept."""
    try:
        with closing(sqlite3.connect(f"file:{workspace}/verdicts.sqlite?mode=ro", uri=True, timeout=60)) as db:
            return int(db.execute("SELECT count(*) FROM verdicts").fetchone()[0])
    except sqlite3.OperationalError:  # there is no file or no table yet
        return 0


def without_time(verdicts: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """The same without when each was kept."""
    return {key: row[:-1] for key, row in verdicts.items()}


def different(kept: dict[str, tuple[Any, ...]], expected: dict[str, tuple[Any, ...]]) -> str:
    """Why two stores are not the same, for a message."""
    judges = {row[4] for row in (*kept.values(), *expected.values())}
    if len(judges) > 1:
        return f"the judge's sources were changed meanwhile: {judges}"
    return f"{len(kept)} verdicts, {len(expected)} expected: {list(kept.items() ^ expected.items())[:2]}"


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits for its parent to notice its end does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(pid: int) -> list[int]:
    """SIGKILL for one process. Returns what it had started: it is stopped before, so that this is all."""
    os.kill(pid, signal.SIGSTOP)
    started = descendants(pid)
    os.kill(pid, signal.SIGKILL)
    return started


def await_end(pids: list[int]) -> None:
    """Raises AssertionError if some of the processes go on."""
    deadline = time.monotonic() + END_SECONDS
    while left := list(filter(alive, pids)):
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.02)


def remove(place: Path) -> None:
    """Remove a workspace: zygotes whose command was killed may be removing their own directories in it meanwhile.

    Raises AssertionError if something keeps it.
    """
    deadline = time.monotonic() + END_SECONDS
    while place.exists():
        assert time.monotonic() < deadline, f"still written to: {place}"
        with suppress(OSError):
            shutil.rmtree(place)


class Loop:
    """Kill, look, go on. Raises AssertionError at the first promise that is broken."""

    def __init__(self, commands: Commands, directory: Path, seed: int) -> None:
        self._commands, self._directory, self._random = commands, directory, random.Random(seed)
        self.library = library(directory / "library")
        alone = directory / "alone"
        started = time.monotonic()
        pid = commands.start(arguments_of(self.library, alone), alone)
        self.status = commands.wait(pid)
        self.seconds = time.monotonic() - started
        self.answer, self.kept = (alone / "stdout").read_text(), verdicts_of(alone)
        assert self.status == 1, (alone / "stderr").read_text()  # one kernel is wrong
        self.kills = self.ended = self.resumed = 0

    def run(self, kills: int) -> None:
        """Until that many commands were killed, and the last workspace has come to its end."""
        while self.kills < kills:
            self._workspace(self._directory / f"killed-{self.ended}", kills)
            self.ended += 1

    def _workspace(self, place: Path, kills: int) -> None:
        kept: dict[str, tuple[Any, ...]] = {}
        while True:
            pid = self._commands.start(arguments_of(self.library, place), place)
            killed = self.kills < kills and self._kill(place, pid)
            status = self._commands.wait(pid)
            now = verdicts_of(place)
            assert kept.items() <= now.items(), "a kept verdict was lost or judged anew"
            if not killed:
                break
            self.resumed += bool(now)
            kept = now
        assert status == self.status, (place / "stderr").read_text()
        assert (place / "stdout").read_text() == self.answer, "another answer than that of the run left alone"
        assert without_time(now) == without_time(self.kept), different(now, self.kept)
        remove(place)

    def _kill(self, place: Path, pid: int) -> bool:
        """Whether it was killed before it ended by itself.

        A quarter of the moments is drawn from the whole run, of which the start of children is the most; the others
        come when some more verdicts are kept, or up to a tenth of a second later.
        """
        until = time.monotonic() + self._random.uniform(0, self.seconds)
        more = self._random.randrange(4) * self._random.randrange(1, 4)
        if more:
            enough, until = count(place) + more, time.monotonic() + ALONE_SECONDS
            while count(place) < enough and time.monotonic() < until and alive(pid):
                time.sleep(0.01)
            until = time.monotonic() + self._random.uniform(0, 0.1)
        time.sleep(max(0.0, until - time.monotonic()))
        if not alive(pid):
            return False
        started = kill(pid)
        await_end([pid, *started])
        self.kills += 1
        return True


def main() -> None:
    """Kill and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    with tempfile.TemporaryDirectory() as directory, Commands() as commands:
        loop = Loop(commands, Path(directory), options.seed)
        print(f"left alone: {len(loop.kept)} verdicts kept in {loop.seconds:.1f} s", flush=True)
        for done in range(10, options.kills + 10, 10):
            loop.run(min(done, options.kills))
            print(
                f"{loop.kills} kills, {loop.resumed} of them with verdicts kept; {loop.ended} runs came to their end, "
                f"each with the answer and the verdicts of the run left alone; nothing was left running",
                flush=True,
            )


if __name__ == "__main__":
    main()
