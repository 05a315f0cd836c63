"""Names that the TAB key completes, as callbacks of parameters (`autocompletion`); typer completes the rest.

Every press of the key starts the program, so nothing here imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import typer

_OVERLOADS = re.compile(r"^OVERLOADS = \((.*?)\)", re.MULTILINE | re.DOTALL)


def choices(*names: str) -> Callable[[], list[str]]:
    """Return a callback that completes these names."""
    return lambda: list(names)


def devices() -> list[str]:
    """Return the device types, with those of the platform files in the working directory."""
    from verify import platforms

    return [*platforms.DEVICES, *(device for _, device in platforms.chips())]


def traces(context: typer.Context) -> list[str]:
    """Return the names of the traces in the workspace."""
    return sorted(path.name.removesuffix(".trace") for path in (_root(context) / "traces").glob("*.trace"))


def campaigns(context: typer.Context) -> list[str]:
    """Return the names of the campaigns in the workspace."""
    return sorted(path.name for path in (_root(context) / "campaigns").glob("*"))


def models() -> list[str]:
    """Return the names of the packaged models."""
    from capture.targets import describe_models

    return [*describe_models(), "opinfo"]


def platforms() -> list[str]:
    """Return the names of the packaged platforms."""
    from verify.platforms import names

    return names()


def operators() -> list[str]:
    """Return the overloads with a packaged kernel, without `aten::` because bash ends a word at a colon."""
    kernels = Path(__file__).parents[1] / "generate" / "kernels"
    declared = (_OVERLOADS.search(path.read_text(encoding="utf-8")) for path in kernels.glob("*/*.py"))
    return sorted({name for match in declared if match for name in re.findall(r'"aten::(.+?)"', match[1])})


def _root(context: typer.Context) -> Path:
    """Return the workspace that the command line or the environment names."""
    return Path(context.find_root().params["workspace"])
