"""The command reference, made from the program's own help texts: `python -m enable.reference > docs/cli.md`."""

from __future__ import annotations

import contextlib
import io
import os
import sys

import typer

from enable.cli import app, run

_WIDTH = "100"  # columns


def help_of(*command: str) -> str:
    """What `enable COMMAND --help` prints in a terminal of 100 columns."""
    os.environ["COLUMNS"] = _WIDTH
    with contextlib.redirect_stdout(io.StringIO()) as text:
        run([*command, "--help"])
    return "\n".join(line.rstrip() for line in text.getvalue().strip().split("\n"))


def commands() -> list[tuple[str, ...]]:
    """Every command by its words, the program itself first."""
    groups = {g.name: _members(g.typer_instance) for g in app.registered_groups if g.typer_instance is not None}
    single = [(c.name,) for c in app.registered_commands if c.name]
    grouped = [(name, command) for name, members in groups.items() if name for command in members]
    return [(), *sorted([*single, *grouped])]


def _members(group: typer.Typer) -> list[str]:
    return [c.name or c.callback.__name__ for c in group.registered_commands if c.callback is not None]


def reference() -> str:
    """The page as Markdown."""
    parts = ["# Command reference\n\nMade from `--help` by `make docs`; a test keeps it so.\n"]
    for command in commands():
        title = " ".join(["enable", *command])
        parts.append(f"## {title}\n\n```text\n{help_of(*command)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference())
