"""The files that decide a verdict: those that judge, and what they import, wherever it lies."""

from __future__ import annotations

import hashlib
from pathlib import Path

from verify.imports import reached

_ROOTS = ("verify.judging.judge", "verify.child.zygote", "verify.child.serve")
_ASIDE = "verify/lint"  # has its say before there is a verdict; reading a kernel file takes words from it


def deciding(root: Path) -> list[Path]:
    """In order, the files under `root`, where the packages lie, whose text a verdict depends on."""
    return reached(root, _ROOTS, _ASIDE)


def digest(root: Path) -> str:
    """Of these files' names and texts, 16 hexadecimal digits."""
    told = (part for path in deciding(root) for part in (str(path.relative_to(root)).encode(), path.read_bytes()))
    return hashlib.sha256(b"\0".join(told)).hexdigest()[:16]
