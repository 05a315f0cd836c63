"""Inspect the output streams: the terminal's width, and if colors may be used."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

_GREEN, _RED, _YELLOW, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_COLOURS = {
    "PASS": _GREEN,
    "PASSED": _GREEN,
    **dict.fromkeys(("SKIPPED", "WAITING", "no kernel"), _YELLOW),
    **dict.fromkeys(("WRONG", "COMPILE_ERROR", "RUNTIME_ERROR", "CRASH", "TIMEOUT", "CHEAT"), _RED),
    **dict.fromkeys(("ABORTED", "REFUSED", "OUT_OF_DIALOGS", "NOT_BEGUN", "DIFFERS"), _RED),
}
_OUTCOME = re.compile(rf"({'|'.join(sorted(_COLOURS, key=len, reverse=True))})\b")


def width(stream: TextIO) -> int | None:
    """Return the columns of the stream's terminal; None without a terminal or cursor control."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def coloured(text: str) -> str:
    """Return a text for stdout with its leading outcome colored if the terminal shows colors.

    There is no color if NO_COLOR is set and not empty (https://no-color.org).
    """
    if width(sys.stdout) is None or os.environ.get("NO_COLOR"):
        return text
    match = _OUTCOME.match(text)
    return f"{_COLOURS[match[1]]}{match[1]}{_PLAIN}{text[match.end() :]}" if match else text
