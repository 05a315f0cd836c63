"""Define `enable shell`: print the shell function that dispatches between the program and the builtin `enable`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import typer

from enable.help import examples
from traces.program import BUILTIN_NAME, DEFAULT_NAME, NAME_VARIABLE

# A word that is not one of our commands may be the name of a builtin. The function tries the builtin first, and runs
# the program if the builtin rejects the word, so that the program reports the mistake.
_FUNCTION = """\
enable() {{
  case "${{1-}}" in
    {commands}) {program} "$@" ;;
    -h|--?*) {program} "$@" ;;
    ''|-*) builtin enable "$@" ;;
    *) builtin enable "$@" 2>/dev/null || {program} "$@" ;;
  esac
}}"""

EPILOG = examples({"Use `enable` for the program in this shell": 'eval "$(enablekit shell)"'})


def command(context: typer.Context) -> None:
    """Print a shell function that makes `enable` run the program.

    bash and zsh have a builtin called `enable`, which hides the program. The function calls the builtin if there is no
    argument, for options with one letter except -h, and for names of builtins. It calls the program in all other cases.
    Put the line below into ~/.bashrc or ~/.zshrc to use it in every shell.
    """
    assert context.parent is not None
    commands = sorted(context.parent.command.commands)  # type: ignore[attr-defined]
    typer.echo(_FUNCTION.format(commands="|".join(commands), program=f"{NAME_VARIABLE}={BUILTIN_NAME} {_program()}"))


def _program() -> str:
    """Return the command that started this program, as an absolute path that does not depend on PATH."""
    started = Path(sys.argv[0])
    if started.name in (BUILTIN_NAME, DEFAULT_NAME):
        return shlex.quote(str(started.absolute()))
    return f"{shlex.quote(sys.executable)} -m enable"
