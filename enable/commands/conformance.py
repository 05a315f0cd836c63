"""Define `enable conformance`: run other projects' test suites against the registered kernels."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from enable import completion
from enable.help import examples
from enable.options import AsJson, Library, typed
from traces import UserError, jsonable
from traces.errors import choose_from
from traces.program import program_label, program_name, program_words

if TYPE_CHECKING:
    from enable.conformance.options import SuiteOptions
    from enable.conformance.results import SuiteReport

SECONDS = 24 * 3600.0  # default time limit in seconds, long enough for a complete run
WORKERS = {"cpu": 1, "cuda": 12}  # default number of processes by device

EPILOG = examples(
    {
        "Run PyTorch's operator checks for all softmax operators": "enable conformance opinfo --ops '*softmax*'",
        "Continue a run of every overload on a GPU": "enable conformance dispatch --device cuda --resume",
        "Summarize all runs in the workspace": "enable conformance report",
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE",
            autocompletion=completion.choices("opinfo", "dispatch", "torchcts", "report"),
            help="Test suite: opinfo, dispatch or torchcts; or report, for a summary.",
        ),
    ],
    device: Annotated[
        str,
        typer.Option(
            autocompletion=completion.choices(*WORKERS),
            help="Device that runs the calls: cpu (interpreted, slow) or cuda.",
        ),
    ] = "cpu",
    ops: Annotated[
        str,
        typer.Option(help="Comma-separated patterns for operators, overloads or tests, for example 'nn.functional.*'."),
    ] = "*",
    dtypes: Annotated[
        str, typer.Option(help="The samples' dtypes, separated by commas.")
    ] = "float32,complex64,bfloat16,int64,bool",
    checks: Annotated[str, typer.Option(help="Checks, separated by commas.", show_default="all")] = "",
    samples: Annotated[int, typer.Option(min=1, help="Maximum samples for each operator, dtype and check.")] = 4,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, help="Stop after this many seconds; continue with --resume.", show_default="24 hours"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, show_default="1 on cpu, 12 on cuda", help="Processes; all share one GPU."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Maximum seconds for one call or test.")] = 120,
    shard: Annotated[
        str,
        typer.Option(
            metavar="I/N", help="Run part I of N, counted from 0; `enable conformance report` merges the parts."
        ),
    ] = "0/1",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an earlier run, and skip completed items.")
    ] = False,
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Run other projects' tests on the registered kernels.

    Each call runs twice: natively, and with the library's kernels registered with PyTorch's dispatcher. Values,
    gradients, shapes, dtypes, strides, aliases, modified arguments and exceptions are compared. A call fails if the
    registration changes its result.

    opinfo runs the checks that PyTorch has for its operators. dispatch calls every overload in the library repeatedly,
    between calls that differ in one property. torchcts runs the tests of TorchCTS (pip install psutil, and pip install
    --no-deps torchcts==0.4.1). report summarizes the runs in the workspace.

    Exit status 1 if the registration caused a failure.
    """
    from enable.conformance.options import SUITES

    workspace: Path = context.obj
    if suite not in (*SUITES, "report"):
        raise UserError(
            f"unknown suite {suite!r}{choose_from(suite, (*SUITES, 'report'))}; "
            f"see: {program_name()} conformance --help"
        )
    if suite == "report":
        _print(_joined(workspace, device, SUITES), as_json, [*program_words(), *typed(context.parent), "conformance"])
        return
    options = _options(workspace, suite, device, ops, dtypes, checks, samples, shard, library)
    again = [
        *program_words(),
        *typed(context.parent),
        "conformance",
        *typed(context, ("ops", "checks", "resume", "as_json")),
    ]
    from enable.conformance.driver import SuiteRun
    from enable.stopping import stoppable

    path = workspace / "conformance" / f"{options.name}.jsonl"
    run = SuiteRun(options, path, seconds or SECONDS, workers or WORKERS[device], timeout, resume)
    if suite == "torchcts":
        from enable.conformance.torchcts import pytest_command

        run.command, run.again = pytest_command(options), False
    words = [*program_words(), *typed(context.parent), "conformance", *typed(context, ("resume",)), "--resume"]
    with stoppable(words):
        complete = run.run()
    if not complete:
        import shlex

        typer.echo(f"{program_label()}: out of time; to go on, run: {shlex.join(words)}", err=True)
    _print([_report([path])], as_json, again)


def _options(  # noqa: PLR0913 - one parameter an option
    workspace: Path,
    suite: str,
    device: str,
    ops: str,
    dtypes: str,
    checks: str,
    samples: int,
    shard: str,
    library: Path | None,
) -> SuiteOptions:
    """Return the suite's options.

    Raises:
        UserError: If a value does not exist or cannot be parsed.
    """
    from enable.conformance.options import SuiteOptions, checked
    from enable.workspace import Workspace

    Workspace(workspace).create()
    index, _, count = shard.partition("/")
    if not (index.isdigit() and count.isdigit()):
        raise UserError(f"shard {shard!r}: write I/N, such as 0/4; see: {program_name()} conformance --help")
    if library is not None and not library.is_dir():
        raise UserError(f"--library {library}: no such directory; name one that has kernel files, or leave it out")
    return checked(
        SuiteOptions(
            suite,
            device,
            ops,
            _words(dtypes),
            _words(checks),
            samples,
            (int(index), int(count)),
            str(library.absolute()) if library else "",
            str(workspace.absolute()),
        )
    )


def _words(text: str) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _report(paths: list[Path]) -> SuiteReport:
    """Return a report on these result files."""
    from enable.conformance.results import exemptions, report

    return report(paths, exemptions())


def _joined(workspace: Path, device: str, suites: tuple[str, ...]) -> list[SuiteReport]:
    """Return a report for each suite that has results in the workspace."""
    paths_by_suite = [sorted((workspace / "conformance").glob(f"{suite}-{device}*.jsonl")) for suite in suites]
    if not any(paths_by_suite):
        raise UserError(
            f"no results on {device} in {workspace / 'conformance'}; run: {program_name()} conformance opinfo"
        )
    return [_report(paths) for paths in paths_by_suite if paths]


def _print(reports: list[SuiteReport], as_json: bool, again: list[str]) -> None:
    """Print the reports.

    Raises:
        typer.Exit: With status 1 if the registration caused a failure.
    """
    from enable.conformance.results import failure_lines
    from enable.tables import table

    if as_json:
        typer.echo(json.dumps(jsonable(reports[0] if len(reports) == 1 else reports)))
    else:
        for report in reports:
            typer.echo(f"{report.suite} on {report.device}: {report.items} items")
            typer.echo(table(report.rows) if report.rows else "no check was made; see --ops, --dtypes and --checks")
            words = again if report.suite in again else [*again, report.suite, "--device", report.device]
            typer.echo("\n".join(failure_lines(report, words)), nl=bool(report.failures))
            for row in report.known:
                typer.echo(f"known: {row['item']} [{row['check']}] {row['label']}: {row['reason']}")
    if not all(report.sound for report in reports):
        sys.stdout.flush()
        raise typer.Exit(1)
