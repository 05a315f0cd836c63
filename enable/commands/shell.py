"""Define `enable shell`: print the shell function that dispatches between the program and the builtin `enable`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

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
}}
if [ -n "${{BASH_VERSION-}}" ]; then
  _enablekit_complete() {{
    local IFS=$'\\n'
    if [[ ${{COMP_WORDS[0]}} == enable && ${{COMP_WORDS[1]}} == -[a-z] ]]; then
      COMPREPLY=($(compgen -b -- "${{COMP_WORDS[COMP_CWORD]}}"))
    else
      COMPREPLY=($({program} shell --complete "$COMP_CWORD" -- "${{COMP_WORDS[@]}}" 2>/dev/null))
    fi
  }}
  complete -o default -F _enablekit_complete enable enablekit
fi"""

EPILOG = examples({"Use `enable` for the program in this shell": 'eval "$(enablekit shell)"'})


def command(
    context: typer.Context,
    complete: Annotated[int | None, typer.Option(hidden=True, help="Print the words that may stand here.")] = None,
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Print a shell function that makes `enable` run the program.

    bash and zsh have a builtin called `enable`, which hides the program. The function calls the builtin if there is no
    argument, for options with one letter except -h, and for names of builtins. It calls the program in all other cases.
    In bash, the TAB key then completes commands, options, and names of traces and platforms, after `enablekit` too.
    Put the line below into ~/.bashrc or ~/.zshrc to use it in every shell.
    """
    assert context.parent is not None
    if complete is not None:
        from enable.completion import completions

        typer.echo("\n".join(completions(context.parent.command, words or [], complete)))
        return
    commands = sorted(context.parent.command.commands)  # type: ignore[attr-defined]
    typer.echo(_FUNCTION.format(commands="|".join(commands), program=f"{NAME_VARIABLE}={BUILTIN_NAME} {_program()}"))


def _program() -> str:
    """Return the command that started this program, as an absolute path that does not depend on PATH."""
    started = Path(sys.argv[0])
    if started.name in (BUILTIN_NAME, DEFAULT_NAME):
        return shlex.quote(str(started.absolute()))
    return f"{shlex.quote(sys.executable)} -m enable"
