"""Excerpts from sources and logs for reports, without details of the machine that ran the case."""

from __future__ import annotations

import re

from verify.linking import written

MAX_PRINTED = 4_000  # characters of output from a wrapper in one call
CONTEXT = 2  # lines shown before and after the marked line
_PATH = re.compile(r"(?<![\w./)\]])/(?:[\w.+@~-]+/)+(?=[\w.+@~<-])")  # directory of an absolute path
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")  # file name made by tempfile
_REPEAT = re.compile(r"^Repro command:.*\n?", re.MULTILINE)  # line from Triton that names the local assembler
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{5,}\b")


def anonymous(text: str) -> str:
    """Remove directories, names of temporary files, addresses and Triton's repro command from `text`."""
    return _ADDRESS.sub("0x...", _TEMPORARY.sub("tmp", _PATH.sub("", _REPEAT.sub("", text))))


def snippet(source: str, line: int) -> str:
    """Return line `line` (counted from 1) with a mark and its context; return '' if there is no such line."""
    lines = source.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    shown = range(max(1, line - CONTEXT), min(len(lines), line + CONTEXT) + 1)
    # a line that was linked in from a block is shown with its number in the block's file
    more = written(source, line)[1] - line
    return "\n".join(f"  {'>' if n == line else ' '} {n + more:4} | {lines[n - 1]}".rstrip() for n in shown)


def cut_log(text: str, limit: int) -> str:
    """Cut `text` to about `limit` characters: the head, with the compiler's message and location, and the tail."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[-(limit // 2) :]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters left out ...]\n{tail}"
