"""Defaults and options that several commands share, each stated once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WORKSPACE = Path(".enable")
PLATFORM = "sim"

Platform = Annotated[str, typer.Option("--platform", help="Where the kernels run.")]
Library = Annotated[
    Path | None,
    typer.Option("--library", envvar="ENABLE_LIBRARY", help="Base kernel library instead of the packaged one."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
