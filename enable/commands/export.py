"""Define `enable export`: write the verified kernels as a package or in BackendBench's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.naming import counted, full
from enable.options import PLATFORM, AsJson, Library, Platform

EPILOG = examples(
    {
        "Write a package for pip, with all verified kernels": "enable export my_kernels",
        "Write one kernel in BackendBench's layout": "enable export bench --format backendbench --op aten::gelu",
    }
)


def command(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIRECTORY", help="Directory to write to; it must be new or empty, or hold an earlier export."
        ),
    ],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            autocompletion=completion.choices("package", "backendbench"),
            help="Format: package or backendbench.",
        ),
    ] = "package",
    name: Annotated[str, typer.Option(help="The package's import name.")] = "aten_kernels",
    op: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=completion.operators,
            parser=full,
            help="Export only this overload; may be repeated.",
        ),
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Also export kernels without a passing verdict in the workspace.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Export verified kernels as a package or for BackendBench.

    A package can be installed with pip and needs only torch and triton. On import it registers the kernels for
    PyTorch's CUDA dispatch key, or for the device of a chip's platform file; the registration can be undone. The
    format backendbench has a directory for each operator, with a file OP/OP_implementation_v1.py that defines
    OP_kernel_impl.
    """
    from enable.chips import is_chip
    from enable.library import known_failures, select
    from enable.serve.export import Label, basis, export
    from enable.workspace import Workspace
    from verify import platforms
    from verify.judging.standings import ENOUGH, is_few

    known = platforms.load(platform)
    kernels = Workspace(context.obj).library(library, known)
    chosen = select(op or None, unverified, kernels, context.obj, platform=known)
    where = f"platform {known.name}" if known.run_device else f"platform {known.name} alone: no GPU ran them"
    judged = "unverified" if unverified else f"verified on {where}"
    chip = known if is_chip(known) else None
    failures = known_failures(chosen.entries, kernels, context.obj, known) if unverified else {}
    label = Label(name, None if unverified else known.name, judged, basis(known, unverified), chip, failures)
    result = export(form, directory, chosen.entries, label, force)
    left_out = {**chosen.left_out, **result.left_out}
    if as_json:
        fields: dict[str, object] = {"directory": str(result.directory), "format": form, "platform": label.platform}
        fields |= {"files": result.files, "overloads": result.overloads}
        independent = {o: chosen.entries[o].independent for o in result.overloads}
        typer.echo(json.dumps({**fields, "independent": independent, "left_out": left_out, "failures": failures}))
        return
    overloads, files = counted(len(result.overloads), "overload"), counted(result.files, "kernel file")
    typer.echo(f"{result.directory}: {overloads} served by {files}, {judged}")
    few = [o for o in result.overloads if is_few(chosen.entries[o].independent)]
    if few:
        typer.echo(
            f"few cases: {counted(len(few), 'overload')}, such as {few[0]}, passed fewer than {ENOUGH} independent ones"
        )
    if failures:
        overload, failure = next(iter(failures.items()))
        typer.echo(
            f"failed: {counted(len(failures), 'overload')}, such as {overload} ({failure}); exported all the same"
        )
    if left_out:
        overload, reason = next(iter(left_out.items()))
        typer.echo(
            f"left out: {counted(len(left_out), 'overload')}, such as {overload} ({reason}); all of them: --json"
        )
