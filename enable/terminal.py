"""What the streams are: how wide a terminal is, and whether colours may be used."""

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
    """Columns of the terminal behind a stream; None where there is none, or one that cannot be written to at places."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def coloured(text: str) -> str:
    """A text for stdout that begins with an outcome, with this word coloured if a terminal shows it.

    https://no-color.org: no colour where NO_COLOR is set and not empty.
    """
    if width(sys.stdout) is None or os.environ.get("NO_COLOR"):
        return text
    found = _OUTCOME.match(text)
    return f"{_COLOURS[found[1]]}{found[1]}{_PLAIN}{text[found.end() :]}" if found else text
