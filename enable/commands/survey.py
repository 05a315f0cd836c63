"""Define `enable survey`: record, replay, judge and train each model in a file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from enable.options import PLATFORM, AsJson, Library, Markdown, Platform


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A TOML file that names models; see above.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL", help="Names of some of them; all if none is given.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            min=1, help="Models looked at at once; each judges in up to 8 processes, which share a GPU's memory."
        ),
    ] = 1,
    as_json: AsJson = False,
    markdown: Markdown = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Record, replay, judge and train each model that a file names, and print a row a model.

    Each is put through enable capture, trace verify, coverage and run --compare, on the platform's device, in processes
    of their own; what one of them says instead of a result is printed with the command. Traces are kept under surveys/
    of the workspace, and verdicts; an interrupted survey goes on where it was. A file names each model as its trace is
    to be called:

        steps = 3
        [models.opt]
        target = "transformers:OPTForCausalLM"
        batch = 2
        set = {num_hidden_layers = 2, hidden_size = 64}

    Exit status 1 if a model cannot be recorded, replayed or trained; what no kernel serves is listed.
    """
    from enable.options import library_words, typed
    from enable.stopping import stoppable
    from enable.survey.entries import load
    from enable.survey.survey import survey, survey_rows, survey_tables
    from enable.tables import markdown_table
    from enable.workspace import Workspace

    workspace, settings = Workspace(context.obj), load(file, names or [])
    with stoppable(shlex.split(workspace.command("survey", *typed(context)))):
        results = survey(settings, file.stem, workspace, platform, library, jobs)
    if as_json:
        typer.echo(json.dumps(results.as_json()))
    elif markdown:
        typer.echo(markdown_table(survey_rows(results)))
    else:
        traces = [row.found["coverage"]["trace"] for row in results.rows if row.missing]
        platform_words = [] if platform == PLATFORM else ["--platform", platform]
        again = workspace.command("coverage", *traces, "--missing", *platform_words, *library_words(library))
        typer.echo(survey_tables(results, again))
    raise typer.Exit(0 if results.passed else 1)
