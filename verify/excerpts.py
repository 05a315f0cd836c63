"""Pieces of source and of logs for reports, without what belongs to the machine that ran the case."""

from __future__ import annotations

import re

from verify.linking import written

MAX_PRINTED = 4_000  # characters of what a wrapper prints in one call
CONTEXT = 2  # lines shown before and after the one that is meant
_PATH = re.compile(r"(?<![\w./)\]])/(?:[\w.+@~-]+/)+(?=[\w.+@~<-])")  # a file's directory, from the root on
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")  # what tempfile calls a file
_REPEAT = re.compile(r"^Repro command:.*\n?", re.MULTILINE)  # Triton's, of the machine's own assembler
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{5,}\b")


def anonymous(text: str) -> str:
    """Without directories, names of temporary files and addresses."""
    return _ADDRESS.sub("0x...", _TEMPORARY.sub("tmp", _PATH.sub("", _REPEAT.sub("", text))))


def snippet(source: str, line: int) -> str:
    """Line `line` (from 1 on) of a file, marked, with those around it; '' if there is no such line."""
    lines = source.splitlines()
    if not 1 <= line <= len(lines):
        return ""
    shown = range(max(1, line - CONTEXT), min(len(lines), line + CONTEXT) + 1)
    more = written(source, line)[1] - line  # of a block, its own lines
    return "\n".join(f"  {'>' if n == line else ' '} {n + more:4} | {lines[n - 1]}".rstrip() for n in shown)


def cut_log(text: str, limit: int) -> str:
    """At most about `limit` characters: the head, where a compiler says what and where, and the tail."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[-(limit // 2) :]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters left out ...]\n{tail}"
