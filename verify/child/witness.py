"""Write a log while a case is rerun: the current position, and a traceback if the process dies.

The parent provides a file. Its first RECORD bytes hold the current position and are rewritten before each program
instance, so that they are available however the child ends. The rest is written by the last of these: Python's
handler for fatal signals (Python traceback), PyTorch's handler (native traceback), or an alarm shortly before the
deadline (Python traceback).
The alarm is a signal, so it interrupts the thread whose traceback it writes. faulthandler's own watchdog would
read frames while they change.
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
_BEFORE = 0.8  # fraction of the deadline at which the alarm goes off


class Witness:
    """Log writer, inactive until `begin` is called; then every call is recorded."""

    def __init__(self) -> None:
        self._fd = -1
        self._seconds = 0.0
        self._started = 0.0
        self._launches = 0

    def begin(self, fd: int, seconds: float) -> None:
        """Write to `fd` from now on.

        Python's handler is installed last, so it is called first; it then calls PyTorch's.

        Args:
            fd: Descriptor of the log.
            seconds: Deadline of a request.
        """
        self._fd, self._seconds = fd, seconds
        os.ftruncate(fd, 0)
        os.lseek(fd, RECORD, os.SEEK_SET)
        os.dup2(fd, 2)
        torch._C._set_print_stack_traces_on_fatal_signal(True)
        faulthandler.enable(fd, all_threads=False)
        faulthandler.register(signal.SIGALRM, fd, all_threads=False)

    def request(self) -> None:
        """Record the start of a request."""
        if self._fd >= 0:
            self._launches, self._started = 0, time.monotonic()
            self._note(kernel="")
            signal.setitimer(signal.ITIMER_REAL, _BEFORE * self._seconds)

    def answered(self) -> None:
        """Stop the alarm, because the request has ended."""
        if self._fd >= 0:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def launch(self, kernel: str) -> None:
        """Record a kernel launch."""
        if self._fd >= 0:
            self._launches += 1
            self._note(kernel=kernel)

    def program(self, kernel: str, program: tuple[int, int, int], number: int, programs: int) -> None:
        """Record that a program instance begins, as number `number` (counted from 1) of `programs` in the launch."""
        if self._fd >= 0:
            self._note(kernel=kernel, program=program, number=number, programs=programs)

    def _note(self, kernel: str, **more: Any) -> None:
        """Write a record; its field `began` is the fraction of the deadline that has passed."""
        began = (time.monotonic() - self._started) / self._seconds
        record = {"kernel": kernel[:100], "launches": self._launches, "began": round(began, 3), **more}
        os.pwrite(self._fd, json.dumps(record).encode().ljust(RECORD), 0)


witness = Witness()
