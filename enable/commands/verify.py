"""Define `enable verify`: judge a kernel file or kernels in the library."""

from __future__ import annotations

import json
import secrets
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from enable import completion

if TYPE_CHECKING:
    from enable.cover.verification import VerifyRequest
    from enable.cover.verifier import Verifier

from enable.help import examples
from enable.options import PLATFORM, AsJson, Library, Platform, typed
from traces.program import program_label, program_name, program_words

EPILOG = examples(
    {
        "Judge the library's kernel for gelu": "enable verify gelu",
        "Judge a kernel file each time it is saved": "enable verify kernel.py --watch",
        "Judge a language model's answer as a kernel for exp": "enable verify answer.md --op aten::exp",
    }
)


def command(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            autocompletion=completion.operators,
            help="An operator, or a file: a kernel file, a bare wrapper or an LLM's answer; - reads standard input.",
        ),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.operators,
            help="Judge the file as this operator, for example aten::exp, or OpInfo's exp.",
        ),
    ] = None,
    whole_library: Annotated[bool, typer.Option("--all", help="Judge every kernel in the library.")] = False,
    cases: Annotated[
        str,
        typer.Option(
            help="Sources for cases, separated by commas: opinfo, extended, traces (all in the workspace), trace:NAME."
        ),
    ] = "opinfo,extended,traces",
    profile: Annotated[
        str | None,
        typer.Option(
            help="Dialect to check the file against.",
            show_default="the platform's for kernel files, triton-cuda for other files",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed for the extended cases.", show_default="random")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum extended cases for each overload.")] = 128,
    case: Annotated[str | None, typer.Option(help="Judge only this case.")] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Skip one layer of judging, for example lint; may be repeated.")
    ] = None,
    compile_only: Annotated[
        bool, typer.Option("--compile-only", help="Compile for the platform's targets, without running.")
    ] = False,
    exhaustive: Annotated[
        bool,
        typer.Option(
            "--exhaustive",
            help="Continue after a failed case; judge elementwise operators on every value in dtypes of up to 16 "
            "bits, and in float32 on a device; check 2^24 random draws.",
        ),
    ] = False,
    hours: Annotated[
        float, typer.Option(min=0, help="With --exhaustive: after a pass, judge new variants for this long.")
    ] = 0.0,
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="On CUDA: also run some passed cases under compute-sanitizer.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Judge the file again each time it is saved.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Judge a corpus with bad/*.py and honest/*.py, and print a table."),
    ] = None,
    sandbox: Annotated[
        str,
        typer.Option(
            autocompletion=completion.choices("full", "none"),
            help="Sandbox: full, or none on a system that cannot confine processes.",
        ),
    ] = "full",
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Judge a kernel: lint, compile, run and compare with ATen.

    The kernel runs in a sandbox. The report shows the outcome, the layer and rule that rejected the kernel, and a
    command that runs the failing case again.

    Exit status 0 only if at least one case ran and all cases passed.
    """
    from traces import UserError

    if sum((target is not None, whole_library, report is not None)) != 1:
        raise UserError(f"name a FILE, an OPERATOR, or --all, or --report CORPUS; see: {program_name()} verify --help")
    if op is not None and target is None:
        raise UserError("--op names the operator for one FILE; leave it out, or name the file")
    if watch and (target is None or as_json or not Path(target).is_file()):
        raise UserError("--watch is for one FILE, and prints text; name an existing file, and leave --json out")
    if hours and (not exhaustive or watch or "extended" not in cases.split(",")):
        raise UserError(
            "--hours continues an exhaustive trial with extended cases; add --exhaustive, leave --watch out, and name "
            "extended in --cases, or leave --hours out"
        )
    from enable.stopping import stoppable
    from enable.workspace import Workspace
    from verify.sandbox.nursery import ahead

    is_random_seed = seed is None
    seed = secrets.randbits(31) if seed is None else seed
    program = [*program_words(), *typed(context.parent), "verify"]
    repeat_command = [*program, *typed(context, ("seed",)), "--seed", str(seed)]
    with stoppable(repeat_command):
        ahead(platform, kept=(Workspace(context.obj).cache / "samples").is_dir())
        from enable.cover.verification import VerifyRequest, check_request
        from enable.cover.verifier import Verifier, corpus_files
        from verify.judging.job import RUN

        skipped_layers = tuple(without or ())
        sources = tuple(name for name in cases.split(",") if name)
        check_request(sources, skipped_layers)
        off = frozenset((*skipped_layers, *((RUN,) if compile_only else ())))
        request = VerifyRequest(sources, seed, off, case, exhaustive, hours, limit, sanitize=sanitize)
        if report is not None:
            corpus_files(report)  # reject bad input before any work starts
        if is_random_seed and target is None:
            # print the seed first, so that the run can be repeated even after kill -9
            typer.echo(
                f"{program_label()}: seed {seed}; if this is stopped, go on with: {shlex.join(repeat_command)}",
                err=True,
            )
        with Verifier(context.obj, library, platform, profile, sandbox, sanitize) as verifier:
            if watch:
                watched(verifier, str(target), op, request, repeat_command)
            if report is not None:
                table = verifier.report(report, request)
                typer.echo(json.dumps(table.as_json()) if as_json else table.text())
                raise typer.Exit(0 if table.sound else 1)
            findings = (
                [verifier.verify(target, op, request)] if target is not None else verifier.verify_library(request)
            )
    if as_json:
        typer.echo(json.dumps(vars(findings[0]) if target is not None else [vars(f) for f in findings]))
    else:
        from enable.cover.finding import finding_lines

        words = [*program, *typed(context, ("seed", "case", "hours", "as_json"))]
        typer.echo("\n".join(finding_lines(f, [*words, "--seed", str(f.seed)]) for f in findings))
    if not all(f.outcome == "PASS" for f in findings):
        sys.stdout.flush()
        raise typer.Exit(1)


def watched(verifier: Verifier, target: str, op: str | None, request: VerifyRequest, words: list[str]) -> None:
    """Judge the file after each save until interrupted; each report names the command that repeats it."""
    from enable.cover.finding import finding_lines
    from enable.cover.watching import watch

    once = [word for word in words if word != "--watch"]
    watch(
        Path(target),
        judge=lambda: finding_lines(verifier.verify(target, op, request), once),
        tell=typer.echo,
        warm=lambda: verifier.judge.warm(request.off),
    )
