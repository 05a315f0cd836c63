"""Define `enable trace`: list, show, replay, audit and exchange traces."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from enable.options import AsJson
from enable.trace_views import exchange
from traces import UserError, jsonable

app = typer.Typer(help="Look into recorded traces.", no_args_is_help=True, rich_markup_mode=None)
app.command()(exchange.export)
app.command(name="import")(exchange.import_)
app.command()(exchange.diff)

Model = Annotated[str, typer.Argument(help="Name of a captured model, or the path of a trace.")]


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the traces of the workspace: model, device, calls, size, and when they were recorded."""
    from enable.trace_views.calls import list_lines, trace_rows
    from enable.workspace import Workspace

    rows = trace_rows(workspace := Workspace(context.obj))
    typer.echo(json.dumps({"traces": rows}) if as_json else list_lines(rows, workspace))


@app.command()
def show(
    context: typer.Context,
    model: Model,
    by: Annotated[str | None, typer.Option("--by", help="One table only: op, phase, module or bytes.")] = None,
    histogram: Annotated[bool, typer.Option("--histogram", help="Add the sizes of each operator's inputs.")] = False,
    op: Annotated[
        str | None,
        typer.Option("--op", metavar="NAME", help="Signatures of this operator alone: aten::add.Tensor, or add."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print overloads, phases, bytes, how values are kept, and what could not be recorded.

    With --op, how one operator was called: shapes, strides, dtypes and other arguments of each signature, its phases,
    the modules that called it, and the ids of its stored calls, as for `enable trace export --call`.

    An unfinished recording is shown as far as it got.
    """
    from enable.trace_views.tables import VIEWS, trace_summary, trace_tables
    from enable.workspace import Workspace

    if by is not None and by not in VIEWS:
        raise UserError(f"--by {by!r} is not one of {', '.join(VIEWS)}")
    if op is not None and (by or histogram):
        raise UserError("--op shows the calls of one operator; leave out --by and --histogram, or --op")
    workspace = Workspace(context.obj)
    trace = workspace.open_trace(model, partial=True)
    if op is not None:
        from enable.trace_views.calls import calls_lines, calls_of

        rows = calls_of(trace, op, workspace.command("trace", "show", model))
        typer.echo(json.dumps({"trace": str(trace.path), "signatures": rows}) if as_json else calls_lines(rows))
        return
    summary = trace_summary(trace)
    typer.echo(json.dumps(summary) if as_json else trace_tables(summary, by, histogram))


@app.command()
def verify(
    context: typer.Context,
    model: Model,
    cpu: Annotated[bool, typer.Option("--cpu", help="Run calls of other devices on the CPU, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replay every stored call on ATen; its hashes must come out.

    Each stored call is run where it was recorded, and its results are compared bit by bit with those of then; of
    another device than the CPU their moments are. Calls of a device that this machine lacks are run on the CPU, and
    must come near.

    Exit status 1 if any comparable call differs.
    """
    from enable.progress import over
    from enable.tables import verify_summary, verify_tables
    from enable.workspace import Workspace
    from traces import verify
    from traces.replay import available

    trace = Workspace(context.obj).open_trace(model, partial=True)
    stored = sum(len(s.samples) for s in trace.signatures.values())
    has_device = (lambda device: False) if cpu else available
    report = verify(trace, lambda calls: over(calls, stored, f"trace verify {model}"), has_device)
    summary = verify_summary(model, trace, report)
    if not trace.complete and not as_json:
        typer.echo(f"UNFINISHED: the recording did not end; {sum(1 for _ in trace.calls())} stored calls survived")
    typer.echo(json.dumps({**summary, "complete": trace.complete}) if as_json else verify_tables(summary))
    raise typer.Exit(0 if report.passed else 1)


@app.command()
def audit(
    context: typer.Context,
    model: Model,
    against: Annotated[
        str | None, typer.Option(help="A trace with all contents of the same program, to look for their bytes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for user bytes in a trace recorded with --values seeded or stats; list the text that it holds.

    Exit status 1 if there are any.
    """
    from enable.tables import audit_lines
    from enable.workspace import Workspace
    from traces.audit import audit

    workspace = Workspace(context.obj)
    findings = audit(workspace.open_trace(model), workspace.open_trace(against) if against else None)
    typer.echo(json.dumps(jsonable(findings)) if as_json else audit_lines(findings))
    raise typer.Exit(0 if findings.passed else 1)
