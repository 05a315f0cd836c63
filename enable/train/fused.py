"""Train with a model's forward and loss compiled, so that one kernel serves each fused subgraph."""

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
    """Return a function that compiles a target's model and loss; `options` go to the backend."""

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
    """Return the outcome for each subgraph in the latest training's graphs."""
    return backend.substitutions()


def compiled_counts() -> Counter[str]:
    """Return the calls that kernels served in compiled graphs, by overload, without those inside native programs."""
    servers = {id(graph.server): graph.server for graph in backend.graphs}
    return sum((server.counts.served for server in servers.values()), Counter[str]())


def rows(substitutions: list[Substitution]) -> list[dict[str, Any]]:
    """Return a table row for each subgraph, grouped by graph."""
    return [
        {
            "subgraph": s.overload or "none",
            "kind": s.kind or "-",
            "graph": f"{s.graph} {s.phase}",
            "times": s.times,
            "fused": "yes" if not s.reason else f"no: {s.reason}",
        }
        for s in substitutions
    ]
