"""Define `enable library`: list, add, show and roll back kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable.naming import full
from enable.options import PLATFORM, AsJson, FewCases, Library, Markdown, Platform

app = typer.Typer(
    help="Look at the kernels in force and at their versions.", no_args_is_help=True, rich_markup_mode=None
)

_Operator = Annotated[str, typer.Argument(metavar="OP", parser=full, help="An overload, such as aten::gelu or gelu.")]


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False, library: Library = None) -> None:
    """List the kernels in force: those accepted in this workspace, then those of the base library."""
    from enable.refine.history import History, list_table
    from enable.workspace import Workspace

    rows = History(Workspace(context.obj), library).kernels()
    typer.echo(json.dumps({"kernels": rows}) if as_json else list_table(rows))


@app.command()
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A kernel file that you wrote.")],
    few_cases: FewCases = False,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Judge a kernel file of your own and put it in force in this workspace.

    It has to pass the recorded calls of its overloads in every trace of the workspace, OpInfo's samples and cases made
    from both; nothing that passed before may fail. Exit status 1 if it is refused.
    """
    from enable.cover.session import Session
    from enable.refine.adding import add, lines
    from enable.workspace import Workspace

    with Session(Workspace(context.obj), library, platform) as session:
        result = add(session, file, few_cases)
    typer.echo(json.dumps(result.as_json()) if as_json else lines(result, file, session))
    raise typer.Exit(0 if result.accepted else 1)


@app.command()
def table(
    context: typer.Context,
    results: Annotated[
        Path | None, typer.Option(help="Fill in what this file of recorded results says: docs/results/library.json.")
    ] = None,
    as_json: AsJson = False,
    markdown: Markdown = False,
    library: Library = None,
) -> None:
    """List every overload that a kernel file serves itself: its dtypes, and the cases passed by platform.

    Cases are those of the workspace's verdicts on the present kernel: enable verify --all, enable coverage TRACE.
    """
    from enable.cover.operators import cells, operators, with_results
    from enable.tables import markdown_table
    from enable.tables import table as text_table
    from enable.workspace import Workspace

    workspace = Workspace(context.obj)
    rows = operators(workspace, library)
    rows = rows if results is None else with_results(rows, workspace, library, results)
    text = markdown_table if markdown else text_table
    typer.echo(json.dumps({"operators": rows}) if as_json else text(cells(rows)))


@app.command()
def record(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to; what it holds of other overloads and platforms stays.")],
    library: Library = None,
) -> None:
    """Put down how many cases of each overload passed, with the kernels that they were judged with."""
    from enable.cover.operators import record
    from enable.workspace import Workspace

    typer.echo(f"{file}: {record(Workspace(context.obj), library, file)} rows recorded")


@app.command()
def history(context: typer.Context, operator: _Operator, as_json: AsJson = False, library: Library = None) -> None:
    """List the versions of an operator's kernel, with where each comes from."""
    from enable.refine.history import History, history_table
    from enable.workspace import Workspace

    versions = History(Workspace(context.obj), library).of(operator)
    typer.echo(json.dumps(versions) if as_json else history_table(versions))


@app.command()
def show(
    context: typer.Context,
    operator: _Operator,
    version: Annotated[int | None, typer.Option(min=0, help="Of this version, not of the one in force.")] = None,
    linked: Annotated[bool, typer.Option("--linked", help="With the blocks that it imports, as it is judged.")] = False,
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


@app.command()
def rollback(
    context: typer.Context,
    operator: _Operator,
    to: Annotated[
        int | None, typer.Option(min=0, help="Number of the version; 0 is the base library's kernel.")
    ] = None,
    as_json: AsJson = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Put an earlier version of an operator's kernel in force, by default the one before.

    This makes a new version. It is refused where other kernels call the operator and nothing would serve it.
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
