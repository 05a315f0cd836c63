"""Define defaults and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from enable import completion

WORKSPACE = Path(".enable")
WORKSPACE_VARIABLE = "ENABLE_WORKSPACE"
CACHE_VARIABLE = "ENABLE_CACHE"  # a directory for removable files, in place of the workspace's cache
COMPLETE_VARIABLE = "_ENABLEKIT_COMPLETE"  # set by the shell functions that complete words
LIBRARY_VARIABLE = "ENABLE_LIBRARY"
PLATFORM = "sim"

Platform = Annotated[
    str,
    typer.Option(
        "--platform",
        autocompletion=completion.platforms,
        help="Platform that runs the kernels: a name from `enable platform list`, or ./FILE.yaml.",
    ),
]
Library = Annotated[
    Path | None,
    typer.Option(
        "--library",
        envvar=LIBRARY_VARIABLE,
        help="Directory with a base kernel library that replaces the packaged one.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not tables.")]
FewCases = Annotated[
    bool, typer.Option("--few-cases", help="Accept kernels that passed fewer than 5 independent cases.")
]
Recordings = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Directory with recorded answers for the turns and replay providers.",
        show_default="packaged recordings",
    ),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]

# Help texts of options that have different types in different commands. A test compares the names of the providers with
# `generate.llm.provider_names()`, which cannot be imported here: user code may have its own module `generate`.
LLM_HELP = (
    "Language model provider: manual (you write the answers), openai (an OpenAI-compatible endpoint), "
    "replay (recorded dialogs) or turns (recorded answers, in order)."
)
LLM_MODEL_HELP = "Name of the provider's model."
BASE_URL_HELP = "Endpoint of the openai provider."
TEMPERATURE_HELP = "Sampling temperature of the model."
DIALOGS_HELP = "Maximum dialogs for an operator."
DIALOG_CALLS_HELP = "Maximum LLM calls in a dialog."


def library_words(base: Path | None) -> list[str]:
    """Return the option that names a base library, unless the environment names it already."""
    return [] if base is None or os.environ.get(LIBRARY_VARIABLE) == str(base) else ["--library", str(base)]


def typed(context: Any, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the words that repeat a command's arguments and options, except defaults and values from the environment.

    `context` is typer's context or its parent; its class is click's and differs by release. `without` names parameters
    to skip.
    """
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in without or value in (None, parameter.get_default(context)):
            continue
        if parameter.envvar and os.environ.get(parameter.envvar) == str(value):
            continue
        for item in value if isinstance(value, list | tuple) else [value]:
            if parameter.param_type_name == "option":
                yield parameter.opts[0]
            if item is not True:
                yield str(item)
