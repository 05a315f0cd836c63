"""`enable coverage`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from enable.options import PLATFORM, AsJson, Library, Platform


def command(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Name of a captured model, or the path of a trace.")],
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Of opinfo: judge all cases, also after one of an operator has failed.")
    ] = False,
    of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACE", help="Look at the overloads alone that this trace needs kernels for; repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Replay a trace on the kernels and print what is covered.

    Each recorded overload is matched to a kernel of the library; its recorded calls are compiled and run there and
    compared with ATen. Verdicts are kept: what was judged before is not run again.

    A trace of opinfo is also told by its operators and their categories: one is covered if every call of every sample
    of it passes. An operator is left at its first failing case. With --of nanogpt it is told by the overloads that
    nanogpt calls, and all of their cases are judged.
    """
    from enable.opinfo import opinfo_tables
    from enable.session import Session
    from enable.tables import coverage_tables
    from enable.workspace import Workspace

    with Session(Workspace(context.obj), library, platform) as session:
        operators = None if of else session.opinfo_coverage(model, exhaustive)
        if operators is not None:
            typer.echo(json.dumps(operators.as_json()) if as_json else opinfo_tables(operators))
            return
        found = session.coverage(model, of or ())
        failing = [row.overload for row in found.failing()]
        next_ = session.refining(model, "--only-failing", overloads=failing)
    typer.echo(json.dumps(found.as_json()) if as_json else coverage_tables(found, next_))
