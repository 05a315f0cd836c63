"""Finding the subgraphs of a dataflow that are worth fusing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from traces.dataflow import Dataflow
from traces.subgraphs import Subgraph

FusionKind: TypeAlias = Literal["pointwise", "reduction", "product", "attention"]


@dataclass(frozen=True)
class Occurrence:
    """Where a subgraph stands in a dataflow. calls: indices of its steps. inputs: numbers of the values that are its
    a0, a1, and so on. outputs: numbers of the values that it gives, in the order of the subgraph's outputs."""

    subgraph: Subgraph
    kind: FusionKind
    calls: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def find(flow: Dataflow) -> list[Occurrence]:
    """All that is worth fusing, in the order of the first calls; no call is in two of them."""
    raise NotImplementedError
