"""`enable trace`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from enable.options import AsJson

app = typer.Typer(help="Look into recorded traces.", no_args_is_help=True, rich_markup_mode=None)

Model = Annotated[str, typer.Argument(help="Name of a captured model, or the path of a trace.")]


@app.command()
def show(context: typer.Context, model: Model, as_json: AsJson = False) -> None:
    """Print overloads, calls, signatures and bytes, by phase."""
    from enable.tables import trace_summary, trace_tables
    from enable.workspace import Workspace

    summary = trace_summary(Workspace(context.obj).open_trace(model))
    typer.echo(json.dumps(summary) if as_json else trace_tables(summary))


@app.command()
def verify(context: typer.Context, model: Model, as_json: AsJson = False) -> None:
    """Replay every stored call on ATen; its hashes must come out.

    Each stored call is run on the CPU and its results are compared bit by bit with those that were recorded.

    Exit status 1 if any comparable call differs.
    """
    from enable.progress import over
    from enable.tables import verify_summary, verify_tables
    from enable.workspace import Workspace
    from traces import verify

    trace = Workspace(context.obj).open_trace(model)
    stored = sum(len(s.samples) for s in trace.signatures.values())
    report = verify(trace, lambda calls: over(calls, stored, "replaying calls"))
    summary = verify_summary(model, trace, report)
    typer.echo(json.dumps(summary) if as_json else verify_tables(summary))
    raise typer.Exit(0 if report.passed else 1)
