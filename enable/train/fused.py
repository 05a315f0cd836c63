"""Training with a model's forward and loss compiled, so that subgraphs are served by one kernel each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from capture.targets import CaptureTarget
from enable import backend
from enable.fuse.substitution import Substitution
from models.training import Training

Prepare = Callable[[CaptureTarget], None]


def fusing(**options: Any) -> Prepare:
    """What compiles the model and the loss of a target. options: of the backend."""

    def prepare(target: CaptureTarget) -> None:
        torch._dynamo.reset()
        backend.graphs.clear()
        training = target.training
        chosen = {**options, "fused": True}
        if training.model is not None:
            training.model.compile(backend=backend.enablekit, options=chosen)
        if isinstance(training, Training):
            training.loss = torch.compile(training.loss, backend=backend.enablekit, options=chosen)

    return prepare


def substituted() -> list[Substitution]:
    """What became of the subgraphs of the graphs that the latest training has had."""
    return backend.substitutions()


def compiled_counts() -> Counter[str]:
    """Calls that kernels served in compiled graphs, by overload; not those of stretches, which are programs."""
    servers = {id(graph.server): graph.server for graph in backend.graphs}
    return sum((server.counts.served for server in servers.values()), Counter[str]())


def rows(found: list[Substitution]) -> list[dict[str, Any]]:
    """A row of a table for each subgraph, those of a graph beside each other."""
    return [
        {
            "subgraph": s.overload or "none",
            "kind": s.kind or "-",
            "graph": f"{s.graph} {s.phase}",
            "times": s.times,
            "fused": "yes" if not s.reason else f"no: {s.reason}",
        }
        for s in found
    ]
