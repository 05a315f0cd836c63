"""The process that zygotes come from: it imports torch once and forks whatever is asked for (verify/child/zygote.py).

Nothing here imports torch, so that a command may have a nursery at work while it imports torch itself.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from traces.packaging import qualified
from verify.platforms import COMPILE, EXECUTE, TRIAL
from verify.sandbox import confine
from verify.sandbox.processes import HOME_PREFIX, remove

JUDGED = qualified("verify.child.serve:runner")  # what answers requests about a kernel
TRIED = qualified("verify.cases.trial:Trial")  # and those whether ATen answers a call
SAMPLED = qualified("verify.cases.sampler:Sampler")  # and those for OpInfo's samples
_LOCK = threading.Lock()


class Nursery:
    """One such process. environment: its variables, beside a HOME of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._home = tempfile.TemporaryDirectory(prefix=HOME_PREFIX, ignore_cleanup_errors=True)
        self._words = Path(self._home.name) / "stderr"
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, self._words.open("wb") as words:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", qualified("verify.child.zygote"), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                cwd=self._home.name,
                env={**environment, "HOME": self._home.name, "TMPDIR": self._home.name},
            )

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(self, told: dict[str, Any], descriptor: int) -> None:
        """Have it fork a zygote, which is told this and answers by the socket of this number. Raises OSError."""
        socket.send_fds(self._control, [json.dumps(told).encode()], [descriptor])

    def prepare(self, mode: str, runner: str) -> None:
        """Have it import what zygotes of this mode and runner need, meanwhile. Raises OSError."""
        self._control.send(json.dumps({"mode": mode, "runner": runner}).encode())

    def last_words(self) -> str:
        """The last line that it, or something that it forked, wrote to stderr."""
        said = self._words.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(said) if line.strip()), "")

    def close(self) -> None:
        """End it; zygotes that came from it stay."""
        self._process.kill()
        self._process.wait()
        self._control.close()
        remove(Path(self._home.name))
        self._home.cleanup()


_STARTED: dict[object, Nursery] = {}  # by everything that a new one would be started with


def nursery(variables: Iterable[str] = ()) -> Nursery:
    """This process's nursery, started where there is none. variables: those of the user's that a device's driver needs.

    It has nothing else of the user's environment but the search paths: no keys, no proxies.
    """
    environment = {
        **{name: os.environ[name] for name in variables if name in os.environ},
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": confine.search_path(),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "OMP_NUM_THREADS": "1",
    }
    key = (os.getpid(), sys.executable, *sorted(environment.items()))
    with _LOCK:
        found = _STARTED.get(key)
        if found is None or not found.lives:
            if found is not None:
                found.close()
            found = _STARTED[key] = Nursery(environment)
            atexit.register(found.close)
        return found


def ahead(platform: str, kept: bool) -> None:
    """Have this process's children begin to start, which takes some seconds, while it does something else.

    platform: the name of one; what runs on a GPU starts when it is asked for. kept: what is asked of OpInfo is likely
    to be at hand, so that its database is not needed.
    """
    kinds = [(COMPILE, JUDGED), (TRIAL, TRIED), *([(EXECUTE, JUDGED)] if platform == "sim" else [])]
    kinds = [*([] if kept else [(TRIAL, SAMPLED)]), *kinds]
    origin = nursery()
    with suppress(OSError):  # told to whoever needs them
        for mode, runner in kinds:
            origin.prepare(mode, runner)
