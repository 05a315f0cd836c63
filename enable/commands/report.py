"""`enable report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable.naming import counted
from enable.options import PLATFORM, AsJson, Library
from traces import UserError


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    traces: Annotated[
        list[str] | None,
        typer.Argument(metavar="TRACE", help="Traces to report on; all, if none and no campaign is named."),
    ] = None,
    campaign: Annotated[
        list[str] | None, typer.Option("--campaign", metavar="NAME", help="Show this campaign, too; repeatable.")
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option("--platform", help="Where kernels run; repeatable.", show_default=PLATFORM),
    ] = None,
    benchmark: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Figures that benchmarks.operators --json wrote; repeatable."),
    ] = None,
    since: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tell what changed since this page, or its kept --json.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The page to write; one that is there is replaced.")] = Path("report.html"),
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Write what is known as one HTML page that opens offline.

    Models with what covers them, what is missing, every overload with its verdict, failing cases with the kernel's
    text and a picture of where the answer differs, OpInfo by category, campaigns with their dialogs, speed, and traces.

    What was not judged yet is judged first, as `enable coverage` does.
    """
    from enable.report.data import report
    from enable.workspace import Workspace
    from traces.format import write_durably

    workspace = Workspace(context.obj)
    if out.is_dir() or not out.parent.is_dir():
        raise UserError(f"--out {out}: {'is a directory' if out.is_dir() else 'no such directory'}; name a file")
    content = report(workspace, library, traces or (), campaign or (), platform or (PLATFORM,), benchmark or (), since)
    if as_json:
        typer.echo(json.dumps(content))
        return
    from enable.report.page import html

    text = html(content)
    try:
        write_durably(out, [text.encode()])
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); name another with --out FILE") from error
    failing = len(content["failures"])
    models, overloads = counted(len(content["models"]), "model"), counted(len(content["overloads"]), "overload")
    lines = [f"{out}: {models}, {overloads}, {len(text) / 1e6:.1f} MB"]
    lines += [f"  {counted(failing, 'failing case')} shown"] if failing else []
    typer.echo("\n".join([*lines, "  next  open it in a browser; it needs no network"]))
