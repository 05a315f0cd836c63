"""Generate documentation pages from the program.

`python -m enable.reference > docs/cli.md` uses the program's help texts, and
`python -m enable.reference docs/results/library.json > docs/operators.md` uses recorded results.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from enable.cli import app, run
from traces.program import BUILTIN_NAME, NAME_VARIABLE

_WIDTH = "100"  # columns
_OPERATORS = """# Overloads of the library

Made by `make docs` from [results/library.json](results/library.json): dtypes that a kernel lists, and cases of it that
passed, of those that were judged. `sim`: the calls of `tests/kernels`, of which CI judges those of kernels that changed
and a sample of the others, or PyTorch's operator tests ([how](results/opinfo.md)). `cuda`, on an NVIDIA H200: PyTorch's
operator tests and cases made from these (`enable verify --all --platform cuda`), or else the calls of 30 training
configurations ([which](results/models.md)). `-`: not judged there. `of an earlier kernel`: the file has changed since;
judge it again (`ENABLE_WORKSPACE=.enable pytest tests/kernels`, with `-m ""` all of them, or `enable verify --all`) and
put it down: `enable library record docs/results/library.json`. In-place, `out=` and most `_foreach_` overloads are
derived from these and have no row.
"""


def help_of(*command: str) -> str:
    """Return the output of `enable COMMAND --help` in a terminal of 100 columns."""
    os.environ["COLUMNS"] = _WIDTH
    os.environ[NAME_VARIABLE] = BUILTIN_NAME  # as in the other pages
    with contextlib.redirect_stdout(io.StringIO()) as text:
        run([*command, "--help"])
    return "\n".join(line.rstrip() for line in text.getvalue().strip().split("\n"))


def commands() -> list[tuple[str, ...]]:
    """Return every command as a tuple of words; the program itself comes first."""
    groups = {g.name: _members(g.typer_instance) for g in app.registered_groups if g.typer_instance is not None}
    single = [(c.name,) for c in app.registered_commands if c.name]
    grouped = [(name, command) for name, members in groups.items() if name for command in members]
    return [(), *sorted([*single, *grouped])]


def _members(group: typer.Typer) -> list[str]:
    """Return the names of a group's commands."""
    return [c.name or c.callback.__name__ for c in group.registered_commands if c.callback is not None]


def reference() -> str:
    """Return the command reference as Markdown."""
    parts = ["# Command reference\n\nMade from `--help` by `make docs`; a test keeps it so.\n"]
    for command in commands():
        title = " ".join(["enable", *command])
        parts.append(f"## {title}\n\n```text\n{help_of(*command)}\n```\n")
    return "\n".join(parts)


def operators(results: Path) -> str:
    """Return the page about the base library's overloads as Markdown; `enable library record` writes `results`."""
    with TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()) as text:
        run(["--workspace", empty, "library", "table", "--markdown", "--results", str(results)])
    return f"{_OPERATORS}\n{text.getvalue()}"


if __name__ == "__main__":
    sys.stdout.write(operators(Path(sys.argv[1])) if len(sys.argv) > 1 else reference())
