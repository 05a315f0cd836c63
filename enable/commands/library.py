"""Define `enable library`: list, add, show and roll back kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from enable import completion
from enable.help import Command, examples
from enable.naming import counted, full
from enable.options import PLATFORM, AsJson, FewCases, Library, Markdown, Platform

if TYPE_CHECKING:
    from enable.workspace import Workspace
    from generate.kernel_library import Library as KernelLibrary

app = typer.Typer(help="List and add kernels, and manage their versions.", no_args_is_help=True, rich_markup_mode=None)

_Operator = Annotated[
    str,
    typer.Argument(
        metavar="OP", autocompletion=completion.operators, parser=full, help="An overload, such as aten::gelu or gelu."
    ),
]


@app.command("list", cls=Command, epilog=examples({"List all kernels": "enable library list"}))
def list_(context: typer.Context, as_json: AsJson = False, library: Library = None) -> None:
    """List the current kernels.

    Kernels that were accepted in this workspace come first. They take precedence over the base library's. The sha256 is
    that of the kernel file, as sha256sum prints it.
    """
    from enable.refine.history import History, list_table
    from enable.workspace import Workspace

    rows = History(Workspace(context.obj), library).kernels()
    typer.echo(json.dumps({"kernels": rows}) if as_json else list_table(rows))


@app.command(cls=Command, epilog=examples({"Add a kernel for gelu": "enable library add gelu.py"}))
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A kernel file that you wrote.")],
    few_cases: FewCases = False,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Judge your own kernel file, and add it to this workspace.

    The kernel must pass the recorded calls of its overloads in every trace in the workspace, OpInfo's samples, and
    cases derived from both. No case that passed before may fail. Exit status 1 if the kernel is rejected.
    """
    from enable.cover.session import Session
    from enable.refine.adding import add, lines
    from enable.workspace import Workspace
    from traces import UserError
    from traces.errors import read_problem

    try:
        file.read_text(encoding="utf-8")  # before a session is started
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({read_problem(error)}); name a kernel file") from error
    with Session(Workspace(context.obj), library, platform) as session:
        result = add(session, file, few_cases)
    typer.echo(json.dumps(result.as_json()) if as_json else lines(result, file, session))
    raise typer.Exit(0 if result.accepted else 1)


@app.command(
    cls=Command,
    epilog=examples(
        {
            "List all overloads": "enable library table",
            "Include recorded results": "enable library table --results docs/results/library.json",
        }
    ),
)
def table(
    context: typer.Context,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Add recorded results from this file, for example docs/results/library.json."
        ),
    ] = None,
    as_json: AsJson = False,
    markdown: Markdown = False,
    library: Library = None,
) -> None:
    """List overloads, with dtypes and passed cases by platform.

    Derived overloads (in-place, out= and most _foreach_ overloads) have no row. The cases are counted from the
    workspace's verdicts on the current kernels, which come from enable verify --all and enable coverage TRACE.
    """
    from enable.cover.operators import cells, operators, with_results
    from enable.tables import markdown_table
    from enable.tables import table as text_table
    from enable.workspace import Workspace

    workspace = Workspace(context.obj)
    rows = operators(workspace, library)
    rows = rows if results is None else with_results(rows, workspace, library, results)
    shown = cells(rows)
    text = markdown_table(shown) if markdown else text_table(shown, ("kernel", "dtypes"))
    typer.echo(json.dumps({"operators": rows}) if as_json else text)


@app.command(
    cls=Command,
    epilog=examples({"Update the recorded results": "enable library record docs/results/library.json"}),
)
def record(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="JSON file to update; results for other overloads and platforms are kept."),
    ],
    library: Library = None,
) -> None:
    """Write the number of passed cases of each overload to a file.

    The file also identifies the kernels that were judged, so that results of changed kernels can be detected.
    """
    from enable.cover.operators import record
    from enable.workspace import Workspace

    typer.echo(f"{file}: {record(Workspace(context.obj), library, file)} rows recorded")


@app.command(cls=Command, epilog=examples({"List the versions of gelu": "enable library history gelu"}))
def history(context: typer.Context, operator: _Operator, as_json: AsJson = False, library: Library = None) -> None:
    """List the versions of an operator's kernel, with their origin.

    The sha256 is that of the kernel file, as in library list. Verdicts are keyed by the meaning of the program instead,
    so a comment changes the sha256 but costs no verdict.
    """
    from enable.refine.history import History, history_table
    from enable.workspace import Workspace
    from generate.versions import BY_HAND

    workspace = Workspace(context.obj)
    kernel_history = History(workspace, library)
    versions = kernel_history.of(operator)
    text = history_table(versions)
    if versions["origin"] == BY_HAND:
        text += f"; {_verdict(workspace, kernel_history.library, operator)}"
    typer.echo(json.dumps(versions) if as_json else text)


def _verdict(workspace: Workspace, library: KernelLibrary, operator: str) -> str:
    """Return a clause on the stored verdicts for the kernel in force, and the command that judges it."""
    from contextlib import closing

    from verify import platforms
    from verify.judging.standings import Standing

    match, standing = library.match(operator), Standing()
    if match is not None and workspace.verdict_file.is_file():
        with closing(workspace.verdicts()) as store:
            standing = store.standings(platforms.load(PLATFORM))[match.kernels, operator]
    judge = workspace.command("verify", operator)
    if standing.failed:
        return f"on {PLATFORM} it is {standing.failure}; see: {judge}"
    if standing.passed:
        return f"on {PLATFORM} it passed {counted(len(standing.passed), 'case')}"
    return f"it has no verdict on {PLATFORM}; judge it: {judge}"


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Print the source of gelu": "enable library show gelu",
            "Print it with the blocks that it imports": "enable library show gelu --linked",
        }
    ),
)
def show(
    context: typer.Context,
    operator: _Operator,
    version: Annotated[int | None, typer.Option(min=0, help="Version number.", show_default="current")] = None,
    linked: Annotated[
        bool, typer.Option("--linked", help="Include the blocks that the kernel imports, as for the judge.")
    ] = False,
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Print the source of an operator's kernel."""
    from enable.refine.history import History
    from enable.workspace import Workspace
    from generate import BLOCKS
    from verify.linking import link

    written = History(Workspace(context.obj), library).source(operator, version)
    source = link(written, (BLOCKS,)) if linked else written
    if as_json:
        typer.echo(json.dumps({"overload": operator, "version": version, "source": source}))
    else:
        typer.echo(source, nl=False)


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Go back by one version": "enable library rollback gelu",
            "Go back to the base library's kernel": "enable library rollback gelu --to 0",
        }
    ),
)
def rollback(
    context: typer.Context,
    operator: _Operator,
    to: Annotated[
        int | None,
        typer.Option(min=0, help="Version number; 0 is the base library's kernel.", show_default="the previous one"),
    ] = None,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Restore an earlier version of an operator's kernel.

    The restored kernel becomes a new version. The rollback is refused if other kernels call the operator and no kernel
    would be left for it.
    """
    from dataclasses import asdict

    from enable.cover.session import Session
    from enable.refine.acceptance import roll_back
    from enable.refine.history import History, version_text
    from enable.workspace import Workspace

    workspace = Workspace(context.obj)
    kernel_history = History(workspace, library)
    group, name = kernel_history.find(operator)
    roll_back(Session(workspace, library, platform), group, name, to)
    version = kernel_history.versions.list(group, name)[-1]
    served = workspace.library(library).match(operator) is not None
    typer.echo(json.dumps(asdict(version)) if as_json else version_text(version, served))
