"""Defaults and options that several commands share, each stated once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

WORKSPACE = Path(".enable")
WORKSPACE_VARIABLE = "ENABLE_WORKSPACE"
CACHE_VARIABLE = "ENABLE_CACHE"  # a directory for what may be removed at any time, instead of one in the workspace
LIBRARY_VARIABLE = "ENABLE_LIBRARY"
PLATFORM = "sim"

Platform = Annotated[str, typer.Option("--platform", help="Where kernels run: a name, or ./FILE.yaml.")]
Library = Annotated[
    Path | None,
    typer.Option("--library", envvar=LIBRARY_VARIABLE, help="Base kernel library instead of the packaged one."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
FewCases = Annotated[
    bool, typer.Option("--few-cases", help="Accept kernels that fewer than 5 independent cases speak for.")
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]


def library_words(base: Path | None) -> list[str]:
    """The option that names a base library, where the environment does not."""
    return [] if base is None or os.environ.get(LIBRARY_VARIABLE) == str(base) else ["--library", str(base)]


def typed(context: Any, without: Collection[str] = ()) -> Iterator[str]:
    """The words that give a command its arguments and options, where they differ from the defaults and the environment.

    context: typer's, or its parent, which is of a click that differs by release. without: parameters to leave out.
    """
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in without or value in (None, parameter.get_default(context)):
            continue
        if parameter.envvar and os.environ.get(parameter.envvar) == str(value):
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            if parameter.param_type_name == "option":
                yield parameter.opts[0]
            if one is not True:
                yield str(one)
