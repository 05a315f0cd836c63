"""Define `enable reduce`: shrink a failing kernel file and its inputs to a minimal program."""

from __future__ import annotations

import shlex
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.options import PLATFORM, Platform

EPILOG = examples(
    {
        "Reduce a kernel that crashes the compiler": "enable reduce kernel.py --platform cuda -o reduced.py",
        "Reduce on the case that `enable verify` named": "enable reduce kernel.py --case CASE",
    }
)
_INTERRUPTED = 130


def command(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A kernel file, or a bare wrapper with its kernel.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write.", show_default="FILE with the ending .reduced.py"),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.operators, help="Judge the file as this operator, for example aten::exp."
        ),
    ] = None,
    case: Annotated[str | None, typer.Option(help="Reduce on this case.", show_default="the first that fails")] = None,
    seed: Annotated[int, typer.Option(help="Seed for the extended cases.")] = 0,
    minutes: Annotated[float, typer.Option(min=0.01, help="Maximum minutes.")] = 10.0,
    platform: Platform = PLATFORM,
) -> None:
    """Reduce a failing kernel and its inputs to a minimal program.

    The command removes statements, branches, parameters, expressions and parts of the inputs as long as the judge gives
    the same outcome and the same message. It writes one Python file that needs only torch and triton. A kernel that
    does not compile fails there without a GPU.

    Ctrl-C keeps the smallest program so far.
    """
    from enable.cover.verification import VerifyRequest
    from enable.progress import show_progress
    from enable.reduce.failure import find_failure, headline, trials
    from enable.reduce.program import lines, program
    from enable.reduce.reduction import Reducer, Reduction
    from enable.workspace import Workspace
    from traces import UserError
    from traces.program import program_name
    from verify import platforms
    from verify.judging.judge import Judge

    started, workspace = time.monotonic(), Workspace(context.obj)
    output = output or file.with_suffix(".reduced.py")
    with (
        closing(workspace.verdicts()) as store,
        Judge(platforms.load(platform), store, cache=workspace.compiled) as judge,
    ):
        failing = find_failure(file, op, VerifyRequest(seed=seed, case=case), workspace, judge)
        if failing is None:
            words = shlex.join(["verify", str(file), "--platform", platform])
            raise UserError(
                f"{file} passes on {platform}, so there is no failure to reduce; see: {program_name()} {words}"
            )
        assert failing.candidate.kernel is not None
        source = failing.candidate.kernel.source
        before = lines(source)
        with trials(failing, judge, workspace) as tried, show_progress(f"reduce {file.name}") as work:
            typer.echo(f"{file.name}: {tried.failure.outcome}: {' '.join(headline(tried.verdict).split())}", err=True)

            def show(reduction: Reduction) -> None:
                work.step(f"{tried.count} trials, {before} lines before, {lines(reduction.source)} now")

            reducer = Reducer(tried, source, failing.arguments, time.monotonic() + 60 * minutes)
            reduction = reducer.reduce(show)
            output.write_text(program(reduction, tried), encoding="utf-8")
    seconds = time.monotonic() - started
    ended = f" ({reduction.ended})" if reduction.ended else ""
    counts = f"{before} lines before, {lines(reduction.source)} after; {tried.count} trials, {seconds:.0f} s"
    typer.echo(f"{output}: {counts}{ended}")
    typer.echo(f"  run it  python {shlex.quote(str(output))}")
    if reduction.ended == "interrupted":
        raise typer.Exit(_INTERRUPTED)
