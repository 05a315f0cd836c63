"""What a child leaves behind while a case is run once more: where it is, and what it says when it dies.

The parent gives it a file. The first RECORD bytes say what runs now, written anew before each program, so that they
are there whatever ends the child. Behind them writes whoever is last: Python's handler of fatal signals (the Python
traceback), PyTorch's (the native one), or an alarm shortly before the deadline (the Python traceback). The alarm is a
signal, which interrupts the thread that it tells of; faulthandler's own watchdog reads frames while they change.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
from typing import Any

import torch

RECORD = 512  # bytes
_BEFORE = 0.8  # of the deadline, when the alarm goes off


class Witness:
    """Off until `begin` is called; then every call is noted."""

    def __init__(self) -> None:
        self._fd = -1
        self._seconds = 0.0
        self._started = 0.0
        self._launches = 0

    def begin(self, fd: int, seconds: float) -> None:
        """Write to `fd` from now on. seconds: the deadline of a request.

        Python's handler is the last to be installed and so the first to be called; it then calls PyTorch's.
        """
        self._fd, self._seconds = fd, seconds
        os.ftruncate(fd, 0)
        os.lseek(fd, RECORD, os.SEEK_SET)
        os.dup2(fd, 2)
        torch._C._set_print_stack_traces_on_fatal_signal(True)
        faulthandler.enable(fd, all_threads=False)
        faulthandler.register(signal.SIGALRM, fd, all_threads=False)

    def request(self) -> None:
        """A request begins."""
        if self._fd >= 0:
            self._launches, self._started = 0, time.monotonic()
            self._note(kernel="")
            signal.setitimer(signal.ITIMER_REAL, _BEFORE * self._seconds)

    def answered(self) -> None:
        """The request has ended."""
        if self._fd >= 0:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def launch(self, kernel: str) -> None:
        """A kernel is launched."""
        if self._fd >= 0:
            self._launches += 1
            self._note(kernel=kernel)

    def program(self, kernel: str, program: tuple[int, int, int], number: int, programs: int) -> None:
        """A program begins, as the `number`th (from 1 on) of a launch of so many."""
        if self._fd >= 0:
            self._note(kernel=kernel, program=program, number=number, programs=programs)

    def _note(self, kernel: str, **more: Any) -> None:
        """began: the share of the deadline that had passed."""
        began = (time.monotonic() - self._started) / self._seconds
        record = {"kernel": kernel[:100], "launches": self._launches, "began": round(began, 3), **more}
        os.pwrite(self._fd, json.dumps(record).encode().ljust(RECORD), 0)


witness = Witness()
