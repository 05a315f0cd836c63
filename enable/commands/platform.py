"""Define `enable platform`: list platforms, check a platform file, and discover a chip's dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from enable import completion
from enable.help import Command, examples
from enable.options import AsJson, Library
from traces import UserError

app = typer.Typer(
    help="List and check platforms, and write the file of a chip.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list", cls=Command, epilog=examples({"List the platforms": "enable platform list"}))
def list_(as_json: AsJson = False) -> None:
    """List the available platforms.

    An option --platform takes one of these names, or the path to a YAML file.
    """
    from enable.cover.platform_check import listed
    from enable.tables import table

    typer.echo(json.dumps({"platforms": listed()}) if as_json else table(listed()))


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Check your own platform file": "enable platform check ./mychip.yaml",
            "Check that this machine can compile for NVIDIA GPUs and use one": "enable platform check cuda",
        }
    ),
)
def check(
    context: typer.Context,
    platform: Annotated[
        str,
        typer.Argument(
            metavar="PLATFORM", autocompletion=completion.platforms, help="A platform name, or the path to a YAML file."
        ),
    ],
    as_json: AsJson = False,
    library: Library = None,
) -> None:
    """Check a platform's file, compiler, device and kernels.

    Read the file, compile and run a kernel, and check the library's kernels against the platform's dialect. Mistakes
    in the file are reported with their lines. Exit status 1 if a target does not compile or the kernel does not run.
    """
    from enable.cover import platform_check
    from enable.workspace import Workspace
    from verify import platforms

    workspace = Workspace(context.obj)
    if not as_json:
        typer.echo(platform_check.head(platforms.load(platform)))
    result = platform_check.check(
        platform,
        lambda known: workspace.library(library, known),
        lambda step: None if as_json else typer.echo(platform_check.step_line(step)),
    )
    typer.echo(json.dumps(result.as_json()) if as_json else platform_check.library_lines(result, workspace))
    raise typer.Exit(0 if result.passed else 1)


@app.command(
    cls=Command,
    epilog=examples(
        {
            "Discover what Triton compiles for a GPU that is not here": (
                "enable platform discover --backend hip --arch gfx942 -o mychip.yaml"
            ),
            "Run the catalogue on a chip of your own": (
                "enable platform discover --device mychip --module torch_mychip -o mychip.yaml"
            ),
            "Try a part of the catalogue": (
                "enable platform discover --backend cuda --arch 90 --only atomics -o part.yaml"
            ),
        }
    ),
)
def discover(  # noqa: PLR0913 - one parameter an option
    context: typer.Context,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Platform file to write; the reports are written beside it."),
    ],
    device: Annotated[
        str, typer.Option(help="PyTorch device type on which the programs run. Without it, they are only compiled.")
    ] = "",
    module: Annotated[
        str, typer.Option(metavar="NAME", help="Python module that makes PyTorch know the device, as it is imported.")
    ] = "",
    backend: Annotated[
        str, typer.Option(help="Triton's name for the backend, such as cuda or hip; the device's by default.")
    ] = "",
    arch: Annotated[str, typer.Option(help="Architecture, as the backend names it, such as 90 or gfx942.")] = "",
    warp_size: Annotated[
        int, typer.Option(min=0, help="Threads of a warp.", show_default="64 for hip, 32 for others")
    ] = 0,
    shared_bytes: Annotated[
        int, typer.Option(min=0, help="Bytes of shared memory of a program.", show_default="by architecture")
    ] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Pattern of groups, features or entries to try; may be repeated.", show_default="all"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that compile.")] = 2,
    seconds: Annotated[int, typer.Option(min=1, help="Time limit for one program, in seconds.")] = 60,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the platform file of a chip or a compiler.

    Several hundred tiny programs are compiled in separate processes. With --device they also run, and their results
    are compared with those of Triton's interpreter. Each failure becomes a rule with its evidence. An HTML page and a
    JUnit XML file beside the platform file show every failure with a program that reproduces it.
    """
    from enable.discover.discovery import DiscoverOptions, discover
    from enable.discover.output import check_path, write
    from enable.discover.profile import summary
    from enable.discover.verdicts import counts
    from enable.stopping import sigterm_as_interrupt
    from enable.tables import table
    from enable.workspace import Workspace

    if not device and not (backend and arch):
        raise UserError("nothing to discover: add --device TYPE, or --backend NAME and --arch ARCH to compile only")
    if bool(backend) != bool(arch):
        raise UserError("--backend and --arch belong together: add the other one")
    check_path(out, force)
    target = int(arch) if arch.isdigit() else arch
    options = DiscoverOptions(
        device, module, backend, target, warp_size, shared_bytes, tuple(only or ()), jobs, seconds
    )
    with sigterm_as_interrupt():
        discovery = discover(options)
        written = write(discovery, out)
    rows = counts(discovery.verdicts.values())
    if as_json:
        failures = {name: v.as_json() for name, v in discovery.verdicts.items() if v.failed}
        stated = {"target": dict(discovery.target), "triton": discovery.triton, "torch": discovery.torch}
        files = [str(path) for path in written]
        typer.echo(json.dumps({**stated, "files": files, "groups": rows, "failures": failures}))
        return
    rules = ", ".join(f"{name} {count}" for name, count in summary(discovery).items() if count) or "none"
    typer.echo(f"{table(rows)}\n\n{discovery.label}: rules: {rules}")
    for path in written:
        typer.echo(f"  {path}")
    typer.echo(f"  next  {Workspace(context.obj).command('platform', 'check', platform_argument(out))}")


def platform_argument(path: Path) -> str:
    """Return a path in the form that --platform takes: with a directory, so that it is no name."""
    return str(path) if path.parent != Path() else f"./{path}"
