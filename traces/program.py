"""Name the program as the user typed it, for every command that a message prints.

bash and zsh have a builtin called `enable`, so users type `enablekit`, a path, or `python -m enablekit`. With the
function of `enablekit shell` they type `enable`. A printed command begins with that name, so that it works when pasted.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

NAME_VARIABLE = "ENABLE_PROGRAM_NAME"  # words for a shell; the function sets it, and child processes inherit it
DEFAULT_NAME = "enablekit"  # for Python users: it works in every shell
BUILTIN_NAME = "enable"  # typed without the function, it never reaches the program in bash and zsh


def adopt_typed_name() -> None:
    """Set the program's name for this process and its children, unless the function or a parent process set it."""
    os.environ.setdefault(NAME_VARIABLE, typed_name(sys.argv[0], sys.orig_argv))


def typed_name(script: str, words: list[str]) -> str:
    """Return the words that start the program again, quoted for a shell.

    Args:
        script: `sys.argv[0]`.
        words: `sys.orig_argv`, the interpreter's own arguments.
    """
    if "-m" in words[1:-1] and Path(script).name == "__main__.py":
        return shlex.join(words[: words.index("-m") + 2])
    name = Path(script).name
    on_path = shutil.which(name)
    if name != BUILTIN_NAME and on_path is not None and Path(on_path).absolute() == Path(script).absolute():
        return shlex.quote(name)
    return shlex.quote(script)


def program_name() -> str:
    """Return the name that the user typed, quoted for a shell."""
    return os.environ.get(NAME_VARIABLE) or DEFAULT_NAME


def program_words() -> list[str]:
    """Return the words of the program's name, to which `shlex.join` adds a command."""
    return shlex.split(program_name())


def program_label() -> str:
    """Return the program's name without its directory or interpreter, which begins each message on stderr."""
    return Path(program_words()[-1]).name
