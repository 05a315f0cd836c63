"""Write composed kernels for fusions to the workspace, where they are judged and served as any other kernel."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from enable.subgraphs import Fusion
from enable.workspace import Workspace
from generate.subgraphs.composing import Uncomposable, compose
from traces.format import write_durably

GROUP = "fused"


def compose_all(workspace: Workspace, fusions: Iterable[Fusion], base: Path | None) -> dict[str, str]:
    """Write a kernel file for each fusion that has none and can be composed.

    Return for the others why they cannot be composed, by overload.
    """
    library, reasons = workspace.library(base), dict[str, str]()
    for fusion in fusions:
        if library.match(fusion.overload) is not None:
            continue
        try:
            text = compose(fusion.subgraph, fusion.shapes[0], library)
        except Uncomposable as error:
            reasons[fusion.overload] = str(error)
            continue
        path = workspace.kernels / GROUP / f"{fusion.overload.partition('::')[2]}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, [text.encode()])
    return reasons
