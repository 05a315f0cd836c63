"""Exceptions for errors that the user can fix, and suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """An error that the user can fix.

    The message is one line: the bad value, the valid choices and the next command. The CLI prints it to stderr and
    exits with status 2.
    """


class TraceError(UserError):
    """A trace that is missing, damaged, hostile or in an unknown version; the message names the file and the field."""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return `, did you mean NAME?` with the names nearest to an unknown one; "" if none is near."""
    nearest = " or ".join(get_close_matches(word, list(names)))
    return nearest and f", did you mean {nearest}?"


def read_problem(error: Exception) -> str:
    """Return in plain words why a text file could not be read."""
    if isinstance(error, UnicodeDecodeError):
        return "not a text in UTF-8"
    return getattr(error, "strerror", None) or str(error)


def choose_from(word: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the names nearest to it, if any is near, and all names."""
    names = list(names)
    return f"{did_you_mean(word, names) or ';'} choose from {', '.join(names)}"
