"""Define `enable shell`: print the shell function that dispatches between the program and the builtin `enable`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from enable.completion import choices
from enable.help import examples
from enable.options import COMPLETE_VARIABLE
from traces import UserError
from traces.errors import choose_from
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
      COMPREPLY=($(COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD=$COMP_CWORD {variable}=complete_bash \\
        {program} 2>/dev/null))
    fi
  }}
  complete -o default -F _enablekit_complete enable enablekit
elif [ -n "${{ZSH_VERSION-}}" ]; then
  _enablekit_complete() {{
    eval "$(_TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {variable}=complete_zsh {program} 2>/dev/null)"
  }}
  (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit -i; }}
  compdef _enablekit_complete enable enablekit
fi"""

EPILOG = examples(
    {
        "Use `enable` for the program in this bash or zsh": 'eval "$(enablekit shell)"',
        "Complete words in fish": "enablekit shell fish | source",
    }
)


def command(
    context: typer.Context,
    shell: Annotated[
        str | None,
        typer.Argument(
            metavar="[fish]",
            autocompletion=choices("fish"),
            help="Print the completion for fish, which has no builtin `enable`.",
            show_default="a function for bash and zsh",
        ),
    ] = None,
) -> None:
    """Print a shell function that makes `enable` run the program.

    bash and zsh have a builtin called `enable`, which hides the program. The function calls the builtin if there is no
    argument, for options with one letter except -h, and for names of builtins. It calls the program in all other cases.
    The TAB key then completes commands, options, and names of models, traces, operators, platforms and campaigns, after
    `enablekit` too. Put the line below into ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish to use it in every shell.
    """
    assert context.parent is not None
    if shell is not None:
        if shell != "fish":
            raise UserError(f"unknown shell {shell!r}{choose_from(shell, ['fish'])}, or name none for bash and zsh")
        scripts = (
            get_completion_script(prog_name=name, complete_var=COMPLETE_VARIABLE, shell=shell)
            for name in (BUILTIN_NAME, DEFAULT_NAME)
        )
        typer.echo("\n".join(scripts))
        return
    commands = sorted(context.parent.command.commands)  # type: ignore[attr-defined]
    typer.echo(
        _FUNCTION.format(
            commands="|".join(commands),
            program=f"{NAME_VARIABLE}={BUILTIN_NAME} {_program()}",
            variable=COMPLETE_VARIABLE,
        )
    )


def _program() -> str:
    """Return the command that started this program, as an absolute path that does not depend on PATH."""
    started = Path(sys.argv[0])
    if started.name in (BUILTIN_NAME, DEFAULT_NAME):
        return shlex.quote(str(started.absolute()))
    return f"{shlex.quote(sys.executable)} -m enable"
