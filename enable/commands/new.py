"""Define `enable new`: write a kernel file's skeleton."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.naming import full

EPILOG = examples(
    {
        "Write silu.py": "enable new silu",
        "Include the shapes that a trace recorded": "enable new gelu --from nanogpt --out my_gelu.py",
    }
)


def command(
    context: typer.Context,
    overload: Annotated[
        str,
        typer.Argument(
            metavar="OP",
            autocompletion=completion.operators,
            parser=full,
            help="An overload, such as aten::silu or silu.",
        ),
    ],
    trace: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TRACE",
            autocompletion=completion.traces,
            help="List the shapes that this trace recorded.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.", show_default="NAME.py")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the skeleton of a kernel file.

    The file has the operator's contract, the recorded shapes, and a kernel that runs but returns wrong results. Replace
    its computation. `enable verify FILE --watch` judges the file after each save.
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
