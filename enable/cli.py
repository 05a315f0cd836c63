"""The `enable` program: collects the commands and maps every way to end to one line and an exit status.

Status 0: done. 1: done, with a negative result (not bit-exact, not refined, not fit to work). 2: the user's mistake,
explained in one line. 130: interrupted. 143: ended by SIGTERM.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import shlex
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._completion_classes import completion_init

from enable import commands, progress
from enable.help import Command, CommandGroup, TopLevelGroup
from enable.options import COMPLETE_VARIABLE, WORKSPACE, WORKSPACE_VARIABLE
from enable.stopping import sigterm_as_interrupt
from traces import UserError
from traces.errors import did_you_mean
from traces.program import adopt_typed_name, program_label, program_name, program_words

# Some typer releases bundle click and others depend on it, so take ClickException from typer's own base classes.
_ClickException: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
_INTERRUPTED = 130
_DISTRIBUTION = "enablekit"

app = typer.Typer(
    name="enable",
    cls=TopLevelGroup,
    help="Bring a PyTorch model up on a new accelerator: record its operators, match each to a Triton kernel, and "
    "write or repair the kernels that are missing or fail.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="For the options and examples of a command: enable COMMAND --help\n"
    'bash and zsh have a builtin called `enable`: run `enablekit`, or type once:\n  eval "$(enablekit shell)"',
)


def _versions(asked: bool) -> None:
    """Print the versions and exit if `--version` is set; reads metadata only and imports nothing."""
    if asked:
        versions = [f"{name} {_version(name)}" for name in (_DISTRIBUTION, "torch", "triton")]
        typer.echo(f"{', '.join(versions)}, Python {sys.version.split()[0]}")
        raise typer.Exit


def _version(distribution: str) -> str:
    """Return a distribution's version."""
    import importlib.metadata  # costs as much as a fifth of the start

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:  # importable without metadata, for example by PYTHONPATH
        return "(not installed)"


@app.callback()
def _global(
    context: typer.Context,
    workspace: Annotated[
        Path,
        typer.Option(
            envvar=WORKSPACE_VARIABLE,
            help="Directory for traces, verdicts, dialogs and kernels; the option may also follow the command.",
        ),
    ] = WORKSPACE,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_versions, help="Print the versions and exit.")
    ] = False,
) -> None:
    context.obj = workspace


_NAMES = sorted(m.name for m in pkgutil.iter_modules(commands.__path__))
for _module in _NAMES:
    _command = importlib.import_module(f"{commands.__name__}.{_module}")
    if hasattr(_command, "app"):
        app.add_typer(_command.app, name=_module, cls=CommandGroup)
    else:
        app.command(name=_module, cls=Command, epilog=_command.EPILOG)(_command.command)


def main(arguments: list[str] | None = None) -> None:
    """Run the program on `arguments` (default: the process's own) and exit."""
    gc.set_threshold(50_000, 20, 100)  # objects made at the start stay; looking for garbage among them takes time
    adopt_typed_name()
    with sigterm_as_interrupt() as received:
        status = run(sys.argv[1:] if arguments is None else arguments)
    if received and status == _INTERRUPTED:
        status = 128 + received[0]
    if "triton" not in sys.modules:  # triton reports its objects as leaks if they are not collected
        gc.freeze()  # skip the garbage collection at exit, which takes 0.5 s
    sys.exit(status)


@cache
def _built() -> Callable[..., Any]:
    """Return the program with all its commands, which take 0.1 s to build."""
    return typer.main.get_command(app)


def run(arguments: list[str]) -> int:
    """Run the program on `arguments` and return its exit status."""
    if COMPLETE_VARIABLE in os.environ:
        completion_init()  # typer calls it only for an app that has the options of `add_completion`
    try:
        status = _built()(arguments, prog_name=program_name(), complete_var=COMPLETE_VARIABLE, standalone_mode=False)
    except UserError as error:
        return _fail(str(error))
    except _ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())  # type: ignore[attr-defined]
            return 0
        return _fail(_usage(error, arguments))
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        return _fail(f"{error.filename or 'the output'}: {error.strerror}; free space or choose another place")
    if status == _INTERRUPTED:  # typer also returns this status for Ctrl-C, without a message
        resumed = [a for a in arguments if a != "--restart"]
        _say(f"interrupted; to go on, run: {shlex.join([*program_words(), *resumed])}")
    return status if isinstance(status, int) else 0


def _usage(error: Exception, arguments: list[str]) -> str:
    """Return a message with the usage error, the choices, and the command that explains them."""
    context = getattr(error, "ctx", None)
    words = [program_name(), *[a for a in arguments if a in _NAMES][:1]]
    path = context.command_path if context is not None else " ".join(words)
    message = " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    unknown = re.match(r"No such command '(.*?)'", message)
    if unknown and context is not None:
        commands = sorted(context.command.commands)
        message = f"{unknown[0]}{did_you_mean(unknown[1], commands)} (commands: {', '.join(commands)})"
    message = _value_named(error) or message
    message = re.sub(r" \(Possible options: (.*)\)", lambda match: f", did you mean {match[1]}?", message)
    return f"{message}; see: {path} --help"


def _value_named(error: Exception) -> str:
    """Return a message with the value that pydantic, which recent versions of typer use, rejected; else ""."""
    from pydantic import ValidationError

    parameter = getattr(error, "param", None)
    if parameter is None or not isinstance(error.__cause__, ValidationError):
        return ""
    first = error.__cause__.errors()[0]
    bounds = first.get("ctx", {})
    problems = {
        "int_parsing": "is not a whole number",
        "float_parsing": "is not a number",
        "greater_than_equal": f"is too small; use {bounds.get('ge', 0):g} or more",
        "less_than_equal": f"is too large; use {bounds.get('le', 0):g} or less",
    }
    problem = problems.get(first["type"]) or first["msg"].replace("Input should", "should")
    name = max(parameter.opts, key=len)
    return f"{name} {str(first['input'])!r} {problem}"


def _fail(message: str) -> int:
    """Print a message as one line and return exit status 2."""
    _say(" ".join(message.split("\n")))
    return 2


def _say(message: str) -> None:
    """End the progress line and print a message."""
    progress.reset()
    progress.say(f"{program_label()}: {message}")
