"""Define `enable export`: write the verified kernels as a package or in BackendBench's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable.naming import counted, full
from enable.options import PLATFORM, AsJson, Library, Platform


def command(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="Where to write; a directory that holds nothing yet.")],
    form: Annotated[str, typer.Option("--format", help="package or backendbench.")] = "package",
    name: Annotated[str, typer.Option(help="Of the package, as it is imported.")] = "aten_kernels",
    op: Annotated[
        list[str] | None, typer.Option(metavar="NAME", parser=full, help="Only this overload; may be repeated.")
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="With kernels that no verdict of the workspace speaks for.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the directory if it holds something.")] = False,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Write the kernels that are verified on a platform in another form.

    package: a package for pip that puts the kernels under PyTorch's CUDA dispatch key when it is imported, needs torch
    and triton alone, and can be undone. backendbench: BackendBench's directories, OP/OP_implementation_v1.py with a
    function OP_kernel_impl.
    """
    from enable.library import basis, select
    from enable.serve.export import Label, export
    from enable.workspace import Workspace
    from verify import platforms
    from verify.judging.standings import ENOUGH, is_few

    known = platforms.load(platform)
    kernels = Workspace(context.obj).library(library, known)
    chosen = select(op or None, unverified, kernels, context.obj, platform=known)
    where = f"platform {known.name}" if known.device else f"platform {known.name} alone: no GPU ran them"
    judged = "unverified" if unverified else f"verified on {where}"
    label = Label(name, None if unverified else known.name, judged, basis(known, unverified))
    result = export(form, directory, chosen.entries, label, force)
    left_out = {**chosen.left_out, **result.left_out}
    if as_json:
        fields: dict[str, object] = {"directory": str(result.directory), "format": form, "platform": label.platform}
        fields |= {"files": result.files, "overloads": result.overloads}
        independent = {o: chosen.entries[o].independent for o in result.overloads}
        typer.echo(json.dumps({**fields, "independent": independent, "left_out": left_out}))
        return
    overloads, files = counted(len(result.overloads), "overload"), counted(result.files, "kernel file")
    typer.echo(f"{result.directory}: {overloads} served by {files}, {judged}")
    few = [o for o in result.overloads if is_few(chosen.entries[o].independent)]
    if few:
        typer.echo(f"few cases: {len(few)} overloads, such as {few[0]}, passed fewer than {ENOUGH} independent ones")
    if left_out:
        overload, reason = next(iter(left_out.items()))
        typer.echo(f"left out: {len(left_out)} overloads, such as {overload} ({reason}); all of them: --json")
