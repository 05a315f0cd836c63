"""Define `enable fuse`: find subgraphs that are worth fusing, and compose and judge kernels for them."""

from __future__ import annotations

import json
import secrets
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from enable import completion
from enable.help import examples
from enable.options import PLATFORM, AsJson, Library, Platform, library_words, typed
from traces.program import program_name, program_words

EPILOG = examples(
    {
        "Record nanoGPT with its data flow": "enable capture nanogpt --skip-steps 1 --dataflow",
        "Find subgraphs, compose a kernel for each, and judge the kernels": "enable fuse nanogpt --compose --verify",
        "Rewrite a KernelBench problem with fused kernels": "enable fuse problem.py --out problem_new.py",
    }
)

if TYPE_CHECKING:
    from enable.subgraphs import Fusion
    from enable.workspace import Workspace


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="TRACE",
            autocompletion=completion.traces,
            help="A model captured with --dataflow, the path to its trace, or FILE.py in KernelBench's format.",
        ),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", autocompletion=completion.operators, help="Find only subgraphs that contain this operator."
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the subgraphs that were found earlier, and their kernels.")
    ] = False,
    why: Annotated[
        bool, typer.Option("--why", help="List the operators that cannot be part of a subgraph, with the reason.")
    ] = False,
    compose: Annotated[
        bool, typer.Option("--compose", help="Compose kernels from the library's functions, without a language model.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Judge the subgraphs' kernels, as `enable verify` does.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For FILE.py: the file to write.", show_default="FILE_new.py")
    ] = None,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Find subgraphs of a trace that are worth fusing.

    Subgraphs are pointwise chains, reductions and matrix products with the pointwise operators around them, and
    attention. Each becomes an operator fused::NAME, with a file in fusions/ in the workspace. The table shows the bytes
    and launches that one kernel would save. Write the kernels with --compose, or with a language model: enable refine
    --op fused::NAME. Judge them with --verify, or a single one: enable verify fused::NAME. Exit status 1 if --verify
    rejects a kernel.

    FILE.py is a problem in KernelBench's format, with Model, get_inputs and get_init_inputs. It runs in a separate
    process, and is rewritten with a class ModelNew that uses the library's kernels and fused kernels. The new file
    needs only torch and Triton; if it is run, it compares ModelNew with Model.
    """
    if model is not None and model.endswith(".py"):
        _problem(Path(model), out, as_json)
        return
    from enable.fuse.composed import compose_all
    from enable.fuse.search import as_json as fusion_json
    from enable.fuse.search import fuse, kernel_state, rows
    from enable.tables import table
    from enable.workspace import Workspace
    from traces import UserError
    from verify import platforms

    workspace = Workspace(context.obj)
    if model is None and not listed:
        raise UserError(
            f"name a TRACE that was captured with --dataflow, or list all subgraphs: {program_name()} fuse --list"
        )
    if why and model is not None:
        from generate.subgraphs.finding import barriers

        barred = barriers(workspace.open_trace(model).dataflow)
        typer.echo(json.dumps(barred) if as_json else "\n".join(barred.values()))
        return
    known = platforms.load(platform)
    if listed:
        fusions_found = _listed(workspace, model)
    else:
        assert model is not None
        fusions_found = fuse(workspace, model, op, workspace.library(library, known))
    reasons = compose_all(workspace, fusions_found, library) if compose else {}
    refused = _judged(context, [fusion.overload for fusion in fusions_found], platform, library) if verify else {}
    kernels, store = workspace.library(library, known), workspace.verdicts()
    try:
        standings = store.standings(known)
    finally:
        store.close()
    states = {fusion.overload: kernel_state(kernels, standings, fusion) for fusion in fusions_found}
    if as_json:
        fusions = [fusion_json(f, states[f.overload]) for f in fusions_found]
        typer.echo(json.dumps({"fusions": fusions, "not_composed": reasons, "refused": sorted(refused)}))
    elif not fusions_found:
        typer.echo(f"no fusions yet; find some: {workspace.command('fuse', model or 'TRACE')}")
    else:
        typer.echo(table(rows(fusions_found, lambda fusion: states[fusion.overload])))
        for overload, reason in reasons.items():
            typer.echo(f"{overload} is not composed: {reason}")
        typer.echo("\n".join(refused.values()), nl=bool(refused))
        if next_ := _next(set(states.values()), compose, verify):
            typer.echo(f"  next    {workspace.command('fuse', *([model] if model else ['--list']), *next_)}")
    if refused:
        raise typer.Exit(1)


def _listed(workspace: Workspace, trace: str | None) -> list[Fusion]:
    """Return the fusions that were found earlier, in one trace if it is given.

    Raises:
        UserError: If the trace has no fusions because it was recorded without data flow.
    """
    fusions = [f for f in workspace.fusions().values() if trace is None or any(u.trace == trace for u in f.uses)]
    if trace is not None and not fusions:
        _ = workspace.open_trace(trace).dataflow
    return fusions


def _next(states: set[str], composed: bool, judged: bool) -> tuple[str, ...]:
    """Return the options for the next step, given the kernels' states."""
    if "none" in states and not composed:
        return "--compose", "--verify"
    return ("--verify",) if "made" in states and not judged else ()


def _judged(context: typer.Context, overloads: list[str], platform: str, library: Path | None) -> dict[str, str]:
    """Judge the fusions' kernels, and return a report by overload for each that does not pass."""
    from enable.cover.finding import finding_lines
    from enable.cover.verification import VerifyRequest
    from enable.cover.verifier import Verifier

    program = [*program_words(), *typed(context.parent), "verify"]
    options = [*library_words(library), *([] if platform == PLATFORM else ["--platform", platform])]
    seed = secrets.randbits(31)
    with Verifier(context.obj, library, platform, None, "full") as verifier:
        findings = verifier.verify_fusions(overloads, VerifyRequest(seed=seed))
    return {
        f.overloads[0]: finding_lines(f, [*program, f.overloads[0], *options, "--seed", str(seed)])
        for f in findings
        if f.outcome != "PASS"
    }


def _problem(file: Path, out: Path | None, as_json: bool) -> None:
    """Rewrite a KernelBench problem with fused kernels, and print a summary."""
    from enable.fuse.problem import compose_problem

    written = out or file.with_name(f"{file.stem}_new.py")
    result = compose_problem(file, written)
    if as_json:
        typer.echo(json.dumps({"file": str(written), **result}))
        return
    for title, calls in (("kernel", result["kernels"]), ("PyTorch", result["by_torch"])):
        for overload, times in calls.items():
            typer.echo(f"{title:8} {times} x {overload}")
    for overload, reason in result["not_composed"].items():
        typer.echo(f"{overload} is not composed: {reason}")
    typer.echo(f"compare them: {shlex.join(['python', str(written)])}")
