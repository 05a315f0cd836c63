"""Define `enable run`: train a model with the library's kernels."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from enable.options import AsJson, Library


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="As for enable capture: a model, transformers:CLASS, MODULE:FACTORY.")],
    device: Annotated[
        str, typer.Option(help="sim: has nothing but the library. cuda: what the library lacks runs natively.")
    ] = "sim",
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 1,
    compare: Annotated[bool, typer.Option("--compare", help="Train on the CPU too, and compare.")] = False,
    fallback: Annotated[
        str | None, typer.Option(metavar="cpu", help="On sim: run there what the library lacks, and count it.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Batch size; the model's own default if not given.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="Optimizer, e.g. adamw, adamw-fused, sgd.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be repeated.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of weights, data and dropout; the model's own if not given.")
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Use kernels that no verdict of the workspace speaks for.")
    ] = False,
    only_judged: Annotated[
        bool, typer.Option("--only-judged", help="Kernels serve no call unlike all that they were judged on.")
    ] = False,
    fused: Annotated[
        bool,
        typer.Option("--fused", help="Compile the model; subgraphs are served by one kernel each. On cuda, or cpu."),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the losses, as .svg or .png; with --compare all of them.")
    ] = None,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Train a model with the library's kernels.

    Prints the loss and the norm of the gradients of each step, which kernel served each overload how often, and each
    fallback by name. A kernel serves the dtypes that it was verified for: enable capture MODEL --device sim, then
    enable coverage MODEL.

    --compare trains on the CPU too, with the same weights and data. A loss or norm may be as far from the CPU's as
    rounding in another order explains: 8 times the largest deviation, so far, of two CPU trainings in which each
    operator's results lose up to their last bit at random, and at least 8 float32 eps. What was
    measured lies within 1.1 of it (docs/run.md).

    On a GPU --compare also trains with PyTorch's own kernels there, and tells the time of a step with each (median of
    20) and the share of the GPU's time that is the library's.

    --fused has torch.compile make graphs of model and loss, puts fused kernels into these (enable fuse), and tells
    which subgraphs were fused, and which were not and why. On cpu, kernels run in Triton's interpreter.

    Exit status 1 if one is farther, or if the device lacked an operator.
    """
    out = sys.stdout

    def tell(line: str) -> None:
        if not as_json:
            out.write(f"{line}\n")
            out.flush()

    from enable.campaigns.plots import draw_losses, empty_figure
    from enable.train.report import Choice, run, summary
    from enable.train.training_run import Recipe
    from enable.workspace import Workspace

    choice = Choice(device, compare, fallback, unverified, only_judged, fused)
    if plot is not None:
        empty_figure(plot)  # fail before the training if the figure cannot be drawn
    recipe = Recipe(model, dict(map(_setting, settings or ())), batch, optimizer, seed, steps)
    with redirect_stdout(sys.stderr):  # stdout is reserved for the command's own output
        report = run(recipe, choice, Workspace(context.obj), library, tell)
    typer.echo(json.dumps(report.as_json()) if as_json else summary(report))
    if plot is not None:
        draw_losses(f"{model} on {device}", report.curves(), plot)
    if report.stopped:
        sys.stderr.write(f"enable: {report.stopped}\n")
    raise typer.Exit(0 if report.passed else 1)


def _setting(text: str) -> tuple[str, str]:
    """Split NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    return name, value
