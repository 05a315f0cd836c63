"""Define `enable report`: write all results as one HTML page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.naming import counted
from enable.options import PLATFORM, AsJson, Library, typed
from traces import UserError
from traces.program import program_name, program_words

MOST_PORT = 65_535
UNSERVED = ("--out", "--json", "--since", "--benchmark")  # options for the page in a file

EPILOG = examples(
    {
        "Report on one model and one campaign, on two platforms": (
            "enable report nanogpt --campaign first --platform sim --platform cuda"
        ),
        "Show the changes since an earlier report": "enable report --since report.html --out new.html",
        "Follow a campaign or a coverage run in a browser while it runs": "enable report --serve",
    }
)


def _port(text: str) -> int:
    """Return a port number."""
    if text.isdecimal() and 1 <= int(text) <= MOST_PORT:
        return int(text)
    free = f"leave it out for a free one: {program_name()} report --serve"
    raise UserError(f"--port {text}: name a port from 1 to {MOST_PORT}, or {free}")


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TRACE",
            autocompletion=completion.traces,
            help="Traces to report on.",
            show_default="all, unless a campaign is named",
        ),
    ] = None,
    campaign: Annotated[
        list[str] | None,
        typer.Option(
            "--campaign",
            metavar="NAME",
            autocompletion=completion.campaigns,
            help="Include this campaign; may be repeated.",
        ),
    ] = None,
    platform: Annotated[
        list[str] | None,
        typer.Option(
            "--platform",
            metavar="NAME",
            autocompletion=completion.platforms,
            help="Platform that runs the kernels; may be repeated.",
            show_default=PLATFORM,
        ),
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
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Serve a live page on this machine that follows running commands, and write no file."
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", parser=_port, help="Port of the live page on 127.0.0.1.", show_default="a free one"),
    ] = None,
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Write all results as one HTML page, or serve a live page.

    The page opens without a network. It begins with one sentence for each model and platform, and shows missing
    operators, the verdict on every overload with its reason, failing cases with the kernel's source and a map of wrong
    elements, OpInfo by category, campaigns with their dialogs, speed, and traces.

    Kernels without a verdict are judged first, as by `enable coverage`.

    --serve follows `enable generate`, `enable refine` and `enable coverage` in a workspace that exists: progress,
    failing cases, dialogs, cost and coverage by model. It judges and writes nothing, and may start before, during or
    after them. The first line that it prints is the page's URL. Ctrl-C ends it.
    """
    if serve or port is not None:
        _check_serving(serve, port, list(typed(context)))
        _serve(context, traces or [], campaign or [], platform or [PLATFORM], library, port or 0)
        return
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


def _serve(  # noqa: PLR0913 - one parameter an option
    context: typer.Context, traces: list[str], campaigns: list[str], platforms: list[str], base: Path | None, port: int
) -> None:
    """Serve the live page until a signal ends the command."""
    from enable.stopping import stoppable

    assert context.parent is not None
    words = [*program_words(), *typed(context.parent), "report", *typed(context)]
    with stoppable(words, "ended; to open the page again"):
        from enable.report.live import LiveReport
        from enable.report.live_server import serve
        from enable.workspace import Workspace

        workspace = Workspace(context.obj)
        serve(LiveReport(workspace, base, traces, campaigns, platforms), workspace.root, port, typer.echo)


def _check_serving(serve: bool, port: int | None, words: list[str]) -> None:
    """Raise UserError for options that contradict each other."""
    if not serve:
        raise UserError(f"--port {port} is for the live page; type: {program_name()} report --serve --port {port}")
    contradicting = [word for word in words if word in UNSERVED]
    if contradicting:
        raise UserError(f"{', '.join(contradicting)}: --serve writes no report; leave one of the two out")
