"""A terminal for tests: a pseudo-terminal with a width."""

import fcntl
import os
import re
import struct
import sys
import termios
import threading
from contextlib import contextmanager

import pytest


class Pty:
    """A terminal that remembers the text written to it."""

    def __init__(self, columns=60):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.file = open(slave, "w", encoding="utf-8")  # noqa: SIM115 - closed by `close`
        self._bytes = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            while read := os.read(self.master, 4096):
                self._bytes += read
        except OSError:  # the other end was closed
            pass

    def close(self):
        self.file.close()
        self._reader.join()
        os.close(self.master)
        self.printed = self._bytes.decode()


@contextmanager
def on_terminal(columns=60):
    """Make standard output and error a terminal of this width inside the block."""
    terminal = Pty(columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stdout", terminal.file)
        patch.setattr(sys, "stderr", terminal.file)
        try:
            yield terminal
        finally:
            terminal.close()


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", text)
