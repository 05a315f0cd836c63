"""The program as a user types it, in this process: what a process of its own adds is torch's import, once more."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from enable.cli import run


def enable(*arguments: Any, cwd: Path, stdin: str | None = None, **environment: str | None) -> CompletedProcess[str]:
    """Run it on the arguments in a directory; returns what a finished process is known by.

    environment: variables; None takes one away."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd):
        for name, value in environment.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO(stdin or ""))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run(list(map(str, arguments)))
    return CompletedProcess(["enable", *arguments], status, out.getvalue(), err.getvalue())
