"""Define `enable run`: train a model with the library's kernels."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import examples
from enable.options import AsJson, Library
from traces.program import program_label

EPILOG = examples(
    {
        "Train with nothing but the library's kernels, and compare with the CPU": (
            "enable run nanogpt --device sim --steps 3 --compare"
        ),
        "Train on a GPU with fused kernels": "enable run nanogpt --device cuda --fused",
    }
)


def command(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            autocompletion=completion.models,
            help="A model as for `enable capture`: a name, transformers:CLASS, timm:MODEL or MODULE:FACTORY.",
        ),
    ],
    device: Annotated[
        str,
        typer.Option(
            autocompletion=completion.devices,
            help="sim or a chip with a platform file (have only the library's kernels), cuda or xpu (other operators "
            "run natively).",
        ),
    ] = "sim",
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 1,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also train on the CPU, and compare the losses and gradient norms.")
    ] = False,
    fallback: Annotated[
        str | None,
        typer.Option(metavar="cpu", help="On sim or a chip: run operators without a kernel on the CPU; count them."),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Batch size.", show_default="set by the model")] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(help="Optimizer, for example adamw, adamw-fused or sgd.", show_default="set by the model"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a model's setting; may be repeated."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed for weights, data and dropout.", show_default="set by the model")
    ] = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Also use kernels without a verdict in the workspace.")
    ] = False,
    only_judged: Annotated[
        bool, typer.Option("--only-judged", help="Use a kernel only for kinds of calls on which it was judged.")
    ] = False,
    fused: Annotated[
        bool,
        typer.Option(
            "--fused", help="Compile the model, and run each fused subgraph as one kernel; needs --device cuda or cpu."
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the losses into this .svg or .png file; with --compare, of every training."
        ),
    ] = None,
    library: Library = None,
    as_json: AsJson = False,
) -> None:
    """Train a model with the library's kernels.

    Print the loss and the gradient norm of each step, the number of calls that each kernel served, and each operator
    that fell back to PyTorch. A kernel serves only dtypes for which it was verified: first run enable capture MODEL
    --device sim, then enable coverage MODEL.

    --compare also trains on the CPU with equal weights and data. A loss or norm may differ from the CPU's by 8 times
    the deviation that rounding explains; at least 8 float32 eps are allowed. That deviation is measured by two more CPU
    trainings, in which each result is truncated at random in its last bit (docs/run.md). On a GPU, --compare also
    trains with PyTorch's own kernels, and prints the median time of 20 steps with each, and the library's share of the
    GPU time.

    --fused compiles the model and loss with torch.compile, replaces subgraphs by fused kernels (see: enable fuse), and
    lists the subgraphs that were fused, and the others with the reason. On cpu, kernels run in Triton's interpreter.

    Exit status 1 if a loss or norm differs by more than that, or if the device lacked an operator.
    """
    out = sys.stdout

    def tell(line: str) -> None:
        if not as_json:
            out.write(f"{line}\n")
            out.flush()

    from enable.campaigns.plots import draw_losses, empty_figure
    from enable.chips import resolve
    from enable.train.report import Choice, run, summary
    from enable.train.training_run import Recipe
    from enable.workspace import Workspace

    device, chip = resolve(device)
    choice = Choice(device, compare, fallback, unverified, only_judged, fused, chip)
    if plot is not None:
        empty_figure(plot)  # fail before the training if the figure cannot be drawn
    recipe = Recipe(model, dict(map(_setting, settings or ())), batch, optimizer, seed, steps)
    with redirect_stdout(sys.stderr):  # stdout is reserved for the command's own output
        report = run(recipe, choice, Workspace(context.obj), library, tell)
    typer.echo(json.dumps(report.as_json()) if as_json else summary(report))
    if plot is not None:
        draw_losses(f"{model} on {device}", report.curves(), plot)
    if report.stopped:
        sys.stderr.write(f"{program_label()}: {report.stopped}\n")
    raise typer.Exit(0 if report.passed else 1)


def _setting(text: str) -> tuple[str, str]:
    """Split NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    return name, value
