"""Define `enable shell`: print the shell function that dispatches between the program and the builtin `enable`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import typer

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


def command(context: typer.Context) -> None:
    """Print the shell function to eval in bash and zsh.

    Type once, or put into ~/.bashrc or ~/.zshrc: eval "$(enablekit shell)"

    `enable` is a builtin of both shells and hides the program. The function leaves to the builtin what is its own:
    no argument, options of one letter but -h, names of builtins. All else goes to the program.
    """
    assert context.parent is not None
    commands = sorted(context.parent.command.commands)  # type: ignore[attr-defined]
    typer.echo(_FUNCTION.format(commands="|".join(commands), program=_program()))


def _program() -> str:
    """Return the command that started this program, as an absolute path that does not depend on PATH."""
    started = Path(sys.argv[0])
    if started.name in ("enable", "enablekit"):
        return shlex.quote(str(started.absolute()))
    return f"{shlex.quote(sys.executable)} -m enable"
