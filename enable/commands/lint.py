"""Define `enable lint`: check a kernel file against a dialect without running it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from enable.options import AsJson
from traces import UserError


def command(
    file: Annotated[
        str, typer.Argument(help="A kernel file, or an LLM's answer with one ```python block; - is stdin.")
    ],
    profile: Annotated[
        str, typer.Option("--profile", help="The dialect: triton-cuda, mtia-like, or triton as for the library.")
    ] = "triton-cuda",
    as_json: AsJson = False,
) -> None:
    """List all that a dialect does not allow in a kernel file, with what to write instead.

    The file is read, never run. Exit status 1 if there is a violation.
    """
    from generate import BLOCKS
    from verify.lint import lint_text, load_profile, render

    violations = lint_text(_read(file), load_profile(profile).with_blocks(BLOCKS))
    if as_json:
        rows = [{"rule": v.rule, "line": v.line, "what": v.problem, "instead": v.instead} for v in violations]
        typer.echo(json.dumps({"file": file, "profile": profile, "clean": not rows, "violations": rows}))
    elif violations:
        typer.echo(render(violations))
    else:
        typer.echo(f"{file}: clean under {profile}")
    raise typer.Exit(1 if violations else 0)


def _read(file: str) -> str:
    """Return the text of a file or of stdin.

    Raises:
        UserError: If it cannot be read or is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; give the path of a kernel file, or - for standard input") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not a text in UTF-8 ({error.reason}); give the path of a kernel file") from error
