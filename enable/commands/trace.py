"""Define `enable trace`: list, show, replay, audit and exchange traces."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from enable import completion
from enable.help import Command, examples
from enable.options import AsJson
from enable.trace_views import exchange
from traces import UserError, jsonable
from traces.errors import choose_from

app = typer.Typer(help="List, show, replay and exchange recorded traces.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list", cls=Command, epilog=examples({"List all traces": "enable trace list"}))
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List traces, with model, device, calls, size and date."""
    from enable.trace_views.calls import list_lines, trace_rows
    from enable.workspace import Workspace

    rows = trace_rows(workspace := Workspace(context.obj))
    typer.echo(json.dumps({"traces": rows}) if as_json else list_lines(rows, workspace))


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Show operators, phases and sizes": "enable trace show nanogpt",
            "Show the calls of one operator": "enable trace show nanogpt --op aten::mm",
        }
    ),
)
def show(
    context: typer.Context,
    model: exchange.TraceArgument,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            autocompletion=completion.choices("op", "phase", "module", "bytes"),
            help="Show a single table: op, phase, module or bytes.",
        ),
    ] = None,
    histogram: Annotated[
        bool, typer.Option("--histogram", help="Add a histogram with each operator's input sizes.")
    ] = False,
    op: Annotated[
        str | None,
        typer.Option(
            "--op",
            metavar="NAME",
            autocompletion=completion.operators,
            help="Show this operator's signatures, for example aten::add.Tensor or add.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a trace's operators, phases, bytes and skipped calls.

    --op shows the calls of one operator: shapes, strides, dtypes and other arguments of each signature, its phases, the
    modules that called it, and the ids of its stored calls for `enable trace export --call`.

    For an unfinished recording, the recorded part is shown.
    """
    from enable.trace_views.tables import VIEWS, trace_summary, trace_tables
    from enable.workspace import Workspace

    if by is not None and by not in VIEWS:
        raise UserError(f"unknown table {by!r}{choose_from(by, VIEWS)}")
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


@app.command(cls=Command, epilog=examples({"Replay a trace": "enable trace verify nanogpt"}))
def verify(
    context: typer.Context,
    model: exchange.TraceArgument,
    cpu: Annotated[bool, typer.Option("--cpu", help="Run all devices' calls on the CPU.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replay every stored call on PyTorch, and compare the results.

    Each call runs on the device on which it was recorded. Results on the CPU must have the recorded bits; for results
    on other devices, the recorded moments (mean, mean |x| and max |x|) are compared. Calls of a device that this
    machine lacks run on the CPU, and their moments are compared within a tolerance.

    Exit status 1 if any comparable call differs.
    """
    from enable.progress import track
    from enable.tables import verify_summary, verify_tables
    from enable.workspace import Workspace
    from traces import verify
    from traces.replay import available

    trace = Workspace(context.obj).open_trace(model, partial=True)
    stored = sum(len(s.samples) for s in trace.signatures.values())
    has_device = (lambda device: False) if cpu else available
    report = verify(trace, lambda calls: track(calls, stored, f"trace verify {model}"), has_device)
    summary = verify_summary(model, trace, report)
    if not trace.complete and not as_json:
        typer.echo(f"UNFINISHED: the recording did not end; {sum(1 for _ in trace.calls())} stored calls survived")
    typer.echo(json.dumps({**summary, "complete": trace.complete}) if as_json else verify_tables(summary))
    raise typer.Exit(0 if report.passed else 1)


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Check a trace before you share it": "enable trace audit shared.trace",
            "Check that it has no bytes of a full trace": "enable trace audit shared.trace --against nanogpt",
        }
    ),
)
def audit(
    context: typer.Context,
    model: exchange.TraceArgument,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="TRACE",
            autocompletion=completion.traces,
            help="Also search for this trace's bytes; it has the same program's full contents.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search a trace for user data.

    The trace must have been recorded with --values seeded or stats. The text that it holds, such as names of modules,
    is listed. Exit status 1 if the trace holds user data.
    """
    from enable.tables import audit_lines
    from enable.workspace import Workspace
    from traces.audit import audit

    workspace = Workspace(context.obj)
    findings = audit(workspace.open_trace(model), workspace.open_trace(against) if against else None)
    typer.echo(json.dumps(jsonable(findings)) if as_json else audit_lines(findings))
    raise typer.Exit(0 if findings.passed else 1)


app.command(
    cls=Command,
    epilog=examples({"Compare traces of two PyTorch versions": "enable trace diff before.trace after.trace"}),
)(exchange.diff)
app.command(
    cls=Command,
    epilog=examples(
        {
            "Write a timeline for ui.perfetto.dev": "enable trace export nanogpt --format chrome",
            "Write one call as a script that needs only PyTorch": (
                "enable trace export nanogpt --format repro --op aten::gelu"
            ),
        }
    ),
)(exchange.export)
app.command(
    "import",
    cls=Command,
    epilog=examples({"Import a Chakra trace": "enable trace import trace.json --format chakra --out my.trace"}),
)(exchange.import_)
