"""Define `enable report`: write all results as one HTML page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable.help import examples
from enable.naming import counted
from enable.options import PLATFORM, AsJson, Library
from traces import UserError

EPILOG = examples(
    {
        "Report on all traces in the workspace": "enable report",
        "Report on one model and one campaign, on two platforms": (
            "enable report nanogpt --campaign first --platform sim --platform cuda"
        ),
        "Show the changes since an earlier report": "enable report --since report.html --out new.html",
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    traces: Annotated[
        list[str] | None,
        typer.Argument(metavar="TRACE", help="Traces to report on.", show_default="all, unless a campaign is named"),
    ] = None,
    campaign: Annotated[
        list[str] | None, typer.Option("--campaign", metavar="NAME", help="Include this campaign; may be repeated.")
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option("--platform", help="Platform that runs the kernels; may be repeated.", show_default=PLATFORM),
    ] = None,
    benchmark: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Include times that benchmarks.operators --json wrote; may be repeated."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show the changes since this earlier report, an HTML page or its --json."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Page to write; an existing file is replaced.")] = Path(
        "report.html"
    ),
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Write all results as one HTML page.

    The page opens without a network. It begins with one sentence for each model and platform, and shows missing
    operators, the verdict on every overload with its reason, failing cases with the kernel's source and a map of wrong
    elements, OpInfo by category, campaigns with their dialogs, speed, and traces.

    Kernels without a verdict are judged first, as by `enable coverage`.
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
    from enable.report.headline import texts_of
    from enable.report.page import html
    from enable.terminal import printable

    text = html(content, out.parent)
    try:
        write_durably(out, [text.encode()])
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); name another with --out FILE") from error
    failing = len(content["failures"])
    models, overloads = counted(len(content["models"]), "model"), counted(len(content["overloads"]), "overload")
    lines = [*texts_of(content["headlines"]), f"{out}: {models}, {overloads}, {len(text) / 1e6:.1f} MB"]
    lines += [f"  {counted(failing, 'failing case')} shown"] if failing else []
    typer.echo("\n".join(map(printable, [*lines, "  next  open it in a browser; it needs no network"])))
