"""Define `enable new`: write a kernel file's skeleton."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from enable.naming import full


def command(
    context: typer.Context,
    overload: Annotated[
        str, typer.Argument(metavar="OP", parser=full, help="An overload, such as aten::silu or silu.")
    ],
    trace: Annotated[
        str | None, typer.Option("--from", metavar="TRACE", help="List the shapes that this trace calls it with.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; NAME.py here if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Begin a kernel file: its contract, the recorded shapes, and a kernel that runs and is still wrong.

    Fill in what it computes; enable verify --watch judges it whenever it is saved.
    """
    from enable.refine.skeleton import skeleton, write
    from enable.workspace import Workspace
    from traces.overloads import base_name, name_of, resolve

    workspace = Workspace(context.obj)
    recorded = workspace.open_trace(trace) if trace is not None else None
    text = skeleton(overload, recorded)
    path = out or Path(f"{base_name(resolve(overload))}.py")
    write(path, text, force)
    cases = ["--cases", f"trace:{trace}"] if trace is not None else []
    typer.echo(f"{path}: a kernel file of {name_of(resolve(overload))}")
    typer.echo(f"  next  {workspace.command('verify', str(path), *cases, '--watch')}")
