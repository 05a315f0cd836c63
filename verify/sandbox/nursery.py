"""Start and address the nursery, a process that imports torch once and forks zygotes on request.

Its code is in verify/child/zygote.py. This module does not import torch, so a command can have a nursery at work
while it imports torch itself.
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

JUDGED = qualified("verify.child.serve:runner")  # answers requests about a kernel
TRIED = qualified("verify.cases.trial:Trial")  # answers requests that ask if ATen accepts a call
SAMPLED = qualified("verify.cases.sampler:Sampler")  # answers requests for OpInfo samples
_LOCK = threading.Lock()


class Nursery:
    """One nursery process, with the variables in `environment` and its own HOME."""

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
        """Return True if the process is running."""
        return self._process.poll() is None

    def ask(self, request: dict[str, Any], descriptor: int) -> None:
        """Have the nursery fork a zygote, and raise OSError if it is gone.

        Args:
            request: Options for the zygote.
            descriptor: Number of the socket over which the zygote answers.
        """
        socket.send_fds(self._control, [json.dumps(request).encode()], [descriptor])

    def prepare(self, mode: str, runner: str) -> None:
        """Have the nursery import the modules that this mode and runner need; raise OSError if it is gone."""
        self._control.send(json.dumps({"mode": mode, "runner": runner}).encode())

    def last_words(self) -> str:
        """Return the last line that the nursery or its descendants wrote to stderr."""
        output = self._words.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(output) if line.strip()), "")

    def close(self) -> None:
        """End the nursery; zygotes that it forked continue to run."""
        self._process.kill()
        self._process.wait()
        self._control.close()
        remove(Path(self._home.name))
        self._home.cleanup()


_STARTED: dict[object, Nursery] = {}  # keyed by everything that a new nursery would be started with


def nursery(variables: Iterable[str] = ()) -> Nursery:
    """Return the nursery for this process, and start one if needed.

    The nursery inherits only the search paths from the user's environment: no keys and no proxies.

    Args:
        variables: Further environment variables that the driver for a device needs.
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
        current = _STARTED.get(key)
        if current is None or not current.lives:
            if current is not None:
                current.close()
            current = _STARTED[key] = Nursery(environment)
            atexit.register(current.close)
        return current


def ahead(platform: str, kept: bool) -> None:
    """Start to prepare child processes in the background, because this takes several seconds.

    Args:
        platform: Name of the platform. Processes that use a GPU are started only on request.
        kept: True if the OpInfo samples are probably cached, so that the OpInfo database is not needed.
    """
    kinds = [(COMPILE, JUDGED), (TRIAL, TRIED), *([(EXECUTE, JUDGED)] if platform == "sim" else [])]
    kinds = [*([] if kept else [(TRIAL, SAMPLED)]), *kinds]
    origin = nursery()
    with suppress(OSError):  # whoever needs the children later reports the failure
        for mode, runner in kinds:
            origin.prepare(mode, runner)
