"""Define `enable lint`: check a kernel file against a dialect without running it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.options import AsJson
from traces import UserError
from traces.errors import read_problem

EPILOG = examples(
    {
        "Check a kernel file": "enable lint kernel.py",
        "Check a language model's answer against the library's dialect": "enable lint answer.md --profile triton",
        "Check a kernel file against the dialect of a chip": "enable lint kernel.py --platform ./mychip.yaml",
    }
)


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A kernel file, or an LLM's answer with one ```python block; - reads standard input.",
        ),
    ],
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            autocompletion=completion.choices("triton-cuda", "triton-nvidia", "mtia-like", "triton"),
            help="Dialect: triton-cuda, triton-nvidia, mtia-like, triton (the library's dialect), or ./FILE.yaml.",
        ),
    ] = "triton-cuda",
    platform: Annotated[
        str,
        typer.Option(
            "--platform",
            autocompletion=completion.platforms,
            help="Platform whose dialect it is, in place of --profile: a name, or ./FILE.yaml.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Check a kernel file against a Triton dialect.

    List each construct that the dialect does not allow, with its replacement. The file is read, never executed. Exit
    status 1 if there is a violation.
    """
    from generate import BLOCKS
    from verify import platforms
    from verify.lint import ANY_FILE, lint_text, load_profile, render

    if platform and profile != ANY_FILE:
        raise UserError(f"--profile {profile} and --platform {platform} each name a dialect; leave one of them out")
    profile = platforms.load(platform).lint if platform else profile
    violations = lint_text(_read(file), load_profile(profile).with_blocks(BLOCKS))
    if as_json:
        rows = [{"rule": v.rule, "line": v.line, "what": v.problem, "instead": v.instead} for v in violations]
        typer.echo(json.dumps({"file": file, "profile": platform or profile, "clean": not rows, "violations": rows}))
    elif violations:
        typer.echo(render(violations))
    else:
        typer.echo(f"{file}: clean under {platform or profile}")
    raise typer.Exit(1 if violations else 0)


def _read(file: str) -> str:
    """Return the text of a file or of stdin.

    Raises:
        UserError: If it cannot be read or is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"cannot be read ({read_problem(error)}); name a kernel file, or - for standard input"
        raise UserError(f"{file}: {problem}") from error
