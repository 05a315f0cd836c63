"""Draw figures with matplotlib, an optional dependency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from traces import UserError


def empty_figure(path: Path) -> Any:
    """Return an empty figure that can be written to `path`.

    Raises:
        UserError: If matplotlib is not installed, if it cannot write this file type, or if the path is a
            directory or its parent does not exist.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("--plot needs matplotlib: pip install 'enablekit[plot]'") from None
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    if path.suffix.lstrip(".") not in figure.canvas.get_supported_filetypes():
        raise UserError(f"{path}: is no kind of figure; name a .svg or .png file")
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a directory" if path.is_dir() else f"there is no directory {path.parent}"
        raise UserError(f"{path}: cannot be drawn, {problem}; name a .svg or .png file in a writable directory")
    return figure


@contextmanager
def axes_of(path: Path) -> Iterator[Any]:
    """Yield the axes of a figure that is written to `path` at the end of the block.

    Raises:
        UserError: As in `empty_figure`, and if the file cannot be written.
    """
    figure = empty_figure(path)
    axes = figure.add_subplot()
    axes.grid(alpha=0.3)
    yield axes
    try:
        figure.savefig(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be drawn ({error}); name a .svg or .png file") from error


def draw_losses(title: str, curves: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw losses by step, one curve per name. Raises UserError as `axes_of` does."""
    with axes_of(path) as axes:
        for number, (name, losses) in enumerate(curves.items()):
            style = "-" if number == 0 else "--"
            axes.plot(range(1, len(losses) + 1), losses, style, linewidth=1.6 - 0.3 * number, label=name)
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.legend(loc="upper right")
