"""What judging one case can end in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """The end of one case. Never reduced to a bool: only PASS covers, and the others ask for different work."""

    PASS = "PASS"
    WRONG = "WRONG"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    CHEAT = "CHEAT"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one case.

    case: the case's id. detail: one line for a table. report: the whole evidence as text, fit for a prompt: compiler
    log, accuracy report or traceback; it holds no path, time or address of the machine that ran it.
    """

    case: str
    outcome: Outcome
    detail: str = ""
    report: str = ""
