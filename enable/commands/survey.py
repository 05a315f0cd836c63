"""Define `enable survey`: record, replay, judge and train each model in a file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from enable.help import examples
from enable.options import PLATFORM, AsJson, Library, Markdown, Platform

_FILE = """\
File:
  steps = 3
  [models.opt]  # the name of the trace
  target = "transformers:OPTForCausalLM"
  batch = 2
  set = {num_hidden_layers = 2, hidden_size = 64}
"""
EPILOG = f"{_FILE}\n" + examples(
    {
        "Survey all models in a file": "enable survey zoo.toml",
        "Survey one of them, and print Markdown": "enable survey zoo.toml opt --markdown",
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file that names models; see below.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL", help="Models in the file.", show_default="all")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(min=1, help="Models in parallel; each uses up to 8 processes, which share the GPU's memory."),
    ] = 1,
    as_json: AsJson = False,
    markdown: Markdown = False,
    platform: Platform = PLATFORM,
    library: Library = None,
) -> None:
    """Record, replay, judge and train every model in a file.

    Each model goes through enable capture, trace verify, coverage and run --compare on the platform's device, each in a
    separate process. The table has a row for each model; errors are printed with the command that caused them. Traces
    and verdicts are kept in surveys/ in the workspace. Repeat the command to continue an interrupted survey.

    Exit status 1 if a model cannot be recorded, replayed or trained. A missing kernel is listed and is no failure.
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
