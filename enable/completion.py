"""Complete the words of a command line: commands, options, and names of traces and platforms.

Called by the function that `enable shell` prints for bash. It imports neither torch nor click, whose package differs by
typer's release.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from enable.options import WORKSPACE, WORKSPACE_VARIABLE

_TRACE, _PLATFORM = "TRACE", "PLATFORM"
_VALUES = {"--platform": _PLATFORM, "--trace": _TRACE, "--of": _TRACE, "--from": _TRACE}  # names by option
_ARGUMENTS = {"coverage", "report", "refine", "fuse", "show", "verify", "audit", "diff", "export"}  # of traces
_NOT_TRACES = {("library", "show"), ("verify",), ("export",), ("dialog", "show")}  # the same words elsewhere


def completions(program: Any, words: list[str], index: int) -> list[str]:
    """Return the possible words at a position of a command line.

    Args:
        program: The program's command tree, a group from typer.
        words: The command line, which begins with the program's name.
        index: Position of the word to complete, which may be empty.
    """
    words = [*words, ""][: index + 1]
    current, before = words[-1], words[1:-1]
    command, path = program, []
    for word in before:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
            path.append(word)
    if before and before[-1] in _VALUES:
        candidates = _names(_VALUES[before[-1]], before)
    elif before and _takes_value(before[-1], [*command.params, *program.params]):
        candidates = []  # bash then completes names of files
    elif current.startswith("-"):
        candidates = [name for parameter in [*command.params, *program.params] for name in parameter.opts]
        candidates = [name for name in [*candidates, "--help"] if name.startswith("--")]
    elif hasattr(command, "commands"):
        candidates = list(command.commands)
    elif path[-1] in _ARGUMENTS and tuple(path) not in _NOT_TRACES:
        candidates = _names(_TRACE, before)
    else:
        candidates = []
    return sorted({word for word in candidates if word.startswith(current)})


def _takes_value(word: str, parameters: Iterable[Any]) -> bool:
    """Return True if a word is an option that the next word is the value of."""
    return any(word in parameter.opts and not getattr(parameter, "is_flag", True) for parameter in parameters)


def _names(kind: str, words: Iterable[str]) -> list[str]:
    """Return the names of the packaged platforms, or of the traces in the workspace that the words name."""
    if kind == _PLATFORM:
        from verify.platforms import names

        return names()
    words = list(words)
    root = os.environ.get(WORKSPACE_VARIABLE) or str(WORKSPACE)
    if "--workspace" in words[:-1]:
        root = words[words.index("--workspace") + 1]
    return [path.name.removesuffix(".trace") for path in (Path(root) / "traces").glob("*.trace")]
