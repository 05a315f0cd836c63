"""Subgraphs of a compiled model's graphs served by one kernel each.

A graph is searched several times: first for all kinds, then for what its products or reductions leave, where these
have no kernel. A subgraph is served by the kernel of the library, if verdicts speak for it or none are asked for, and
else, if none are asked for, by one that is composed of the library's functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch.fx import GraphModule

from enable.fuse.graphs import FlowOfGraph, replace_calls
from enable.library import entry_of, select
from enable.serve.entries import NO_FLOATS, Entry
from generate.kernel_library import Library, Match
from generate.subgraphs.composing import compose
from generate.subgraphs.finding import PASSES, Occurrence, find
from traces import UserError
from traces.facts import tagged
from traces.subgraphs import Subgraph
from verify.contract.derive import plans

APART = "its product has {} elements, at which what follows is faster by itself (docs/results/steps.md)"
LARGE = 1 << 22  # elements of a product from which what its functions cost exceeds the launch that they save
_DEAR = tagged("dear")


@dataclass(frozen=True)
class Substitution:
    """What became of one subgraph in one graph. overload: of the subgraph, "" for a graph that was not searched. times:
    how often it occurs there. reason: why it was not fused, "" if it was."""

    graph: int
    phase: str
    kind: str
    overload: str
    times: int
    reason: str = ""


@dataclass
class FusedKernels:
    """The kernels for subgraphs that one process has asked for: how each is served, or why not."""

    library: Library
    place: Path
    device: str
    unverified: bool
    _entries: dict[str, Entry | str] = field(default_factory=dict)

    def get(self, overload: str) -> Entry | None:
        found = self._entries.get(overload)
        return found if isinstance(found, Entry) else None

    def objection(self, occurrence: Occurrence, shapes: list[tuple[int, ...]], elements: int) -> str:
        """Why no kernel serves it; "" where one does. shapes: of its inputs. elements: of its largest output."""
        overload = occurrence.subgraph.overload
        if occurrence.kind == "product" and elements >= LARGE and _is_dear(occurrence.subgraph):
            return APART.format(f"{elements:,}")
        if overload not in self._entries:
            occurrence.subgraph.define()
            self._entries[overload] = self._find(occurrence.subgraph, shapes)
        found = self._entries[overload]
        return found if isinstance(found, str) else ""

    def _find(self, subgraph: Subgraph, shapes: list[tuple[int, ...]]) -> Entry | str:
        overload = subgraph.overload
        try:
            if self.library.match(overload) is not None:
                chosen = select([overload], self.unverified, self.library, self.place, self.device)
                return chosen.entries[overload]
            text = compose(subgraph, shapes, self.library)
        except UserError as error:
            return str(error)
        if not self.unverified:
            return "it has no verified kernel; make one of its trace: enable fuse MODEL --compose --verify"
        kernel = self.library.parse(text, Path("composed") / f"{overload.partition('::')[2]}.py")
        match = Match(plans(overload)[0], kernel, None, True)
        return entry_of(match, kernel.listed | {NO_FLOATS})


def _is_dear(subgraph: Subgraph) -> bool:
    """Whether it takes exponentials and the like of every element: tensor cores wait while a tile's are computed."""
    bases = [call.overload.partition("::")[2].partition(".")[0] for call in subgraph.steps]
    return any(base.removesuffix("_backward") in _DEAR for base in bases)


def substitute(module: GraphModule, phase: str, number: int, kernels: FusedKernels) -> Iterator[Substitution]:
    """Put fused kernels into a graph; what was done, and what was not and why. number: of the graph."""
    told: dict[str, Substitution] = {}
    for kinds in PASSES:
        graph = FlowOfGraph(module)
        chosen, lacking = [], False
        for occurrence in find(graph.flow, kinds):
            shapes = [graph.flow.values[v].shape for v in occurrence.inputs]
            elements = max(math.prod(graph.flow.values[v].shape) for v in occurrence.outputs)
            reason = kernels.objection(occurrence, shapes, elements)
            overload = occurrence.subgraph.overload
            before = told.get(overload) or Substitution(number, phase, occurrence.kind, overload, 0, reason)
            if kinds is PASSES[0] or not reason or overload not in told:
                told[overload] = replace(before, times=before.times + 1)
            chosen += [] if reason else [occurrence]
            lacking = lacking or bool(reason)
        if chosen:
            replace_calls(module, graph, chosen)
        if not lacking:
            break
    yield from told.values()
