"""Inspect the output streams, and make texts safe to print: width, colors, and control characters."""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from typing import TextIO

from traces.program import program_words

_GREEN, _RED, _YELLOW, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_COLOURS = {
    "PASS": _GREEN,
    "PASSED": _GREEN,
    **dict.fromkeys(("SKIPPED", "WAITING", "no kernel"), _YELLOW),
    **dict.fromkeys(("WRONG", "COMPILE_ERROR", "RUNTIME_ERROR", "CRASH", "TIMEOUT", "CHEAT"), _RED),
    **dict.fromkeys(("ABORTED", "REFUSED", "OUT_OF_DIALOGS", "NOT_BEGUN", "DIFFERS"), _RED),
}
LAYOUT = "\n\t"  # control characters that texts with several lines keep, for `printable`
_LABEL = re.compile(r" *\S+( \S+)* {2,}")  # a summary's first column
_OUTCOME = re.compile(rf"({'|'.join(sorted(_COLOURS, key=len, reverse=True))})\b")


def width(stream: TextIO) -> int | None:
    """Return the columns of the stream's terminal; None without a terminal or cursor control."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def printable(text: str, kept: str = "") -> str:
    r"""Replace characters that control a terminal or reorder text by visible escapes such as `\x1b` or `\u202e`.

    Names in traces, file names and texts from models are not trusted: an escape sequence could repaint the terminal,
    and a bidirectional override could make a name read as another one. Every table of the CLI and the HTML report pass
    their texts through this function.

    Args:
        text: The text.
        kept: Control characters to keep, for example a newline in a text with several lines.
    """
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def summary_line(text: str) -> str:
    """Return a printable line for stdout, wrapped at the terminal's width; a label keeps a column of its own.

    A command of this program at the end is not wrapped, so that it can be copied.
    """
    line, columns = printable(text), width(sys.stdout)
    if columns is None or len(line) <= columns:
        return line
    program = shlex.join(program_words())
    start, name, command = line.partition(f"{program} ")
    label = _LABEL.match(line)
    lines = textwrap.wrap(
        start + (name + command).replace(" ", "\0"),
        columns,
        subsequent_indent=" " * (label.end() if label else 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\0", " ")


def coloured(text: str) -> str:
    """Return a text for stdout with its leading outcome colored if the terminal shows colors.

    There is no color if NO_COLOR is set and not empty (https://no-color.org).
    """
    if width(sys.stdout) is None or os.environ.get("NO_COLOR"):
        return text
    match = _OUTCOME.match(text)
    return f"{_COLOURS[match[1]]}{match[1]}{_PLAIN}{text[match.end() :]}" if match else text
