"""Lay out the help pages: commands under headings, and examples at the end of each page.

Rich markup is off, so the pages are plain text that can be copied and compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any

from typer.core import TyperCommand, TyperGroup

from traces import UserError
from traces.program import program_name

SECTIONS = {  # the commands under each heading of `enable --help`, in the order in which they are listed
    "Record": ("capture", "trace", "models", "survey"),
    "Measure": ("coverage", "report", "compare", "conformance"),
    "Judge and write kernels": (
        "verify",
        "lint",
        "reduce",
        "new",
        "refine",
        "generate",
        "campaign",
        "dialog",
        "tune",
        "fuse",
    ),
    "Run": ("run", "export", "library"),
    "Set up": ("doctor", "platform", "shell"),
}
_COMMAND = re.compile(rf"\benable( +(?:{'|'.join(name for names in SECTIONS.values() for name in names)}|COMMAND)\b)")
_TYPE = re.compile(r"<([^>]*)>")
_WORDS = {"path": "PATH", **dict.fromkeys(("int", "float", "int range", "float range"), "NUMBER")}
_WORKSPACE = "--workspace"
_UNLIMITED = 10_000  # characters; a long summary is wrapped and not cut off


def examples(commands: Mapping[str, str]) -> str:
    """Return the examples that end a help page.

    Args:
        commands: Command by purpose, a sentence without its full stop.
    """
    return "\n".join(["Examples:", *(f"  # {purpose}.\n  {command}" for purpose, command in commands.items())])


def in_typed_words(text: str) -> str:
    """Return a text with the commands that it names as the user types them: `enablekit coverage` without the function.

    Help texts are written with `enable`, as the pages of the documentation are.
    """
    return _COMMAND.sub(lambda match: f"{program_name()}{match[1]}", text)


def _worded(command: Any) -> Any:
    """Return a copy of a command whose help page names the program as it was typed."""
    copied = copy(command)
    copied.params = [copy(parameter) for parameter in command.params]
    for parameter in copied.params:
        parameter.get_help_record = partial(_plain_record, parameter.get_help_record)
    for documented in (copied, *copied.params):
        if getattr(documented, "help", None):
            documented.help = in_typed_words(documented.help)
    return copied


def _plain_record(record: Callable[[Any], tuple[str, str] | None], ctx: Any) -> tuple[str, str] | None:
    """Return a parameter's row of a help page with words in place of Python types, bounds and parentheses."""
    row = record(ctx)
    if row is None:
        return None
    name, text = row
    name = re.sub(r"^(\S+) <[^>]*>$", r"\1", name) if not name.startswith("-") else _TYPE.sub(_word_of, name)
    text = re.sub(r"\[default: \((.*?)\)(?=[];])", r"[default: \1", text)
    return name, re.sub(r"x>=(\d+)(\.0)?", r"at least \1", text)


def _word_of(type_: re.Match[str]) -> str:
    """Return the word for the values of a Python type."""
    return _WORDS.get(type_[1].removeprefix("list[").removesuffix("]"), "TEXT")


class Command(TyperCommand):
    """A command whose epilog is printed unchanged, so that its lines can be copied."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, without braces around required arguments."""
        return [re.sub(r"[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page with the program's name as it was typed."""
        super(Command, _worded(self)).format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the epilog without wrapping it."""
        _write_unchanged(self.epilog, formatter)


class CommandGroup(TyperGroup):
    """A group that lists its commands with complete summaries."""

    sections: Mapping[str, tuple[str, ...]] = {}

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page with the program's name as it was typed."""
        super(CommandGroup, _worded(self)).format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the epilog without wrapping it."""
        _write_unchanged(self.epilog, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list for each section, and one for the commands in no section."""
        named = {name for names in self.sections.values() for name in names}
        rest = tuple(name for name in self.list_commands(ctx) if name not in named)
        for heading, names in {**self.sections, "Commands": rest}.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            rows = [
                (name, in_typed_words(c.get_short_help_str(_UNLIMITED)))
                for name, c in commands.items()
                if c and not c.hidden
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class TopLevelGroup(CommandGroup):
    """The group of all commands, under the headings of `SECTIONS`."""

    sections = SECTIONS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words; `--workspace DIR` may also follow the command."""
        return super().parse_args(ctx, _workspace_first(args))


def _workspace_first(arguments: list[str]) -> list[str]:
    """Return the words with `--workspace DIR` moved before the command.

    Raises:
        UserError: DIR is missing.
    """
    first: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == _WORKSPACE:
            directory = next(words, None)
            if directory is None:
                raise UserError(f"{_WORKSPACE} names no directory; see: {program_name()} --help")
            first += [word, directory]
        else:
            (first if word.startswith(f"{_WORKSPACE}=") else rest).append(word)
    return first + rest


def _write_unchanged(text: str | None, formatter: Any) -> None:
    """Write a text after an empty line."""
    if text:
        formatter.write_paragraph()
        formatter.write(f"{in_typed_words(text)}\n")
