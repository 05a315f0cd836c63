"""Define `enable coverage`: replay a trace on the kernels and print the covered overloads."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.options import PLATFORM, AsJson, Library, Platform
from traces import UserError
from traces.errors import did_you_mean

RANKS = ("time", "calls", "bytes", "modules")  # values for --by with --missing
MATRIX_RANKS = ("models", "time", "calls", "bytes")  # values for --by with several traces

EPILOG = examples(
    {
        "Judge the kernels for all operators of nanoGPT": "enable coverage nanogpt",
        "List missing operators, ranked by estimated time": "enable coverage nanogpt --missing",
        "Compare two models": "enable coverage nanogpt dlrm",
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE",
            autocompletion=completion.traces,
            help="Captured models' names or paths to traces; several traces give a matrix.",
        ),
    ],
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="For opinfo: judge all an operator's cases, even if one has failed.")
    ] = False,
    of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACE",
            autocompletion=completion.traces,
            help="Report only overloads for which this trace needs kernels; may be repeated.",
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="List missing operators, ranked by estimated time or by --by.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.choices(*RANKS, "models"),
            show_default="time; models for several traces",
            help="Rank missing operators by time, calls, bytes, modules (one trace) or models (several traces).",
        ),
    ] = None,
    compile_only: Annotated[
        bool, typer.Option("--compile-only", help="Compile every call for the platform's targets, without running it.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            autocompletion=completion.choices("local", "ray"),
            help="local, or ray: judge on the Ray cluster at RAY_ADDRESS, or on a new one on this machine.",
        ),
    ] = "local",
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Match a trace's operators to kernels, and judge the kernels.

    Each recorded overload is matched to a kernel of the library. The kernel is compiled, runs the recorded calls, and
    is compared with ATen. Verdicts are kept, so a second run judges only new kernels and new calls.

    For a trace of opinfo, coverage is counted by operator and category: an operator is covered if every call of every
    sample passes. Judging stops at an operator's first failing case. --of nanogpt reports only the overloads that
    nanogpt calls, and judges all their cases.

    --missing lists operators without a correct kernel. Their time is estimated from bytes and operations on a nominal
    chip. --compile-only checks kernels for a chip that this machine lacks, for example with --platform hip.

    Several traces give a matrix with a row for each overload and a column for each trace. Overloads that most traces
    lack come first.
    """
    _check(len(models), missing, by, compile_only, exhaustive, of)
    model = models[0]
    from enable.workspace import Workspace
    from verify.sandbox.nursery import ahead

    if engine == "local":
        ahead(platform, kept=any(Workspace(context.obj).cache.glob("opinfo-*.json")))
    from enable.cover.opinfo import opinfo_tables
    from enable.cover.session import Session
    from enable.tables import coverage_tables
    from enable.terminal import summary_line
    from enable.trust import UNTRIED

    with Session(Workspace(context.obj), library, platform, engine=engine) as session:
        if len(models) > 1:
            from enable.cover.matrix import matrix, matrix_tables

            trace_matrix = matrix(session, models, by or "models")
            typer.echo(
                json.dumps(trace_matrix.as_json(missing)) if as_json else matrix_tables(trace_matrix, session, missing)
            )
            return
        if compile_only:
            from enable.cover.compiling import compile_coverage, compile_tables

            compiled = compile_coverage(session, model)
            typer.echo(json.dumps(compiled.as_json()) if as_json else compile_tables(compiled))
            return
        if missing:
            from enable.cover.missing import missing_tables, what_is_missing

            ranking = what_is_missing(session, model, of or (), by or "time")
            typer.echo(json.dumps(ranking.as_json()) if as_json else missing_tables(ranking, session, model))
            return
        page = summary_line(f"  report             {session.command('report', model)}")
        operators = None if of else session.opinfo_coverage(model, exhaustive)
        if operators is not None:
            typer.echo(json.dumps(operators.as_json()) if as_json else f"{opinfo_tables(operators)}\n{page}")
            return
        report = session.coverage(model, of or ())
        failing = [row.overload for row in report.failing()]
        by_hand = next((row.detail.rpartition("try it: ")[2] for row in report.rows if UNTRIED in row.detail), "")
        next_ = by_hand or session.refining(model, "--only-failing", overloads=failing)
        listed = session.command("coverage", model, "--missing")
        tables = coverage_tables(report, listed, next_, lambda overload: session.command("verify", overload))
    typer.echo(json.dumps(report.as_json()) if as_json else f"{tables}\n{page}")


def _check(  # noqa: PLR0913 - one parameter an option
    traces: int, missing: bool, by: str | None, compile_only: bool, exhaustive: bool, of: list[str] | None
) -> None:
    """Raise UserError for options that contradict each other."""
    ranks = MATRIX_RANKS if traces > 1 else RANKS
    if by is not None and (by not in ranks or not (missing or traces > 1)):
        subject = f"a matrix of {traces} traces" if traces > 1 else "--missing"
        raise UserError(f"--by {by!r}: {subject} is ranked by {', '.join(ranks)}{did_you_mean(by, ranks)}")
    if traces > 1 and (compile_only or exhaustive or of):
        raise UserError("--compile-only, --exhaustive and --of look at one trace; name one, or leave them out")
    if compile_only and (missing or exhaustive or of):
        raise UserError("--compile-only looks at every recorded call; leave out --missing, --exhaustive and --of")
