"""Serve subgraphs of a compiled model's graphs by one kernel each.

A graph is searched several times. The first pass covers all kinds of subgraphs. Later passes search the steps of
products or reductions that have no kernel. A library kernel serves a subgraph if it is verified or if verdicts are not
required. If verdicts are not required, a kernel composed from the library's functions may serve it, too.
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
from traces.program import program_name
from traces.subgraphs import Subgraph
from verify.contract.derive import plans

APART = "its product has {} elements, at which what follows is faster by itself (docs/results/steps.md)"
LARGE = 1 << 22  # elements of a product; from here its fused functions cost more than the launch that they save
_DEAR = tagged("dear")


@dataclass(frozen=True)
class Substitution:
    """The outcome for one subgraph in one graph.

    Attributes:
        graph: Number of the graph.
        phase: Phase of the graph.
        kind: Kind of the subgraph.
        overload: The subgraph's overload, "" for a graph that was not searched.
        times: Number of occurrences in the graph.
        reason: Why it was not fused, "" if it was.
    """

    graph: int
    phase: str
    kind: str
    overload: str
    times: int
    reason: str = ""


@dataclass
class FusedKernels:
    """The kernels for subgraphs that one process requested: the entry that serves each, or why none does."""

    library: Library
    workspace: Path
    device: str
    unverified: bool
    _entries: dict[str, Entry | str] = field(default_factory=dict)

    def get(self, overload: str) -> Entry | None:
        """Return the entry for an overload, or None."""
        entry = self._entries.get(overload)
        return entry if isinstance(entry, Entry) else None

    def objection(self, occurrence: Occurrence, shapes: list[tuple[int, ...]], elements: int) -> str:
        """Return why no kernel serves the subgraph; "" if one does.

        `shapes` are those of its inputs. `elements` is the size of its largest output.
        """
        overload = occurrence.subgraph.overload
        if occurrence.kind == "product" and elements >= LARGE and _is_dear(occurrence.subgraph):
            return APART.format(f"{elements:,}")
        if overload not in self._entries:
            occurrence.subgraph.define()
            self._entries[overload] = self._find(occurrence.subgraph, shapes)
        entry = self._entries[overload]
        return entry if isinstance(entry, str) else ""

    def _find(self, subgraph: Subgraph, shapes: list[tuple[int, ...]]) -> Entry | str:
        """Return the entry for a library or composed kernel, or the reason why there is none."""
        overload = subgraph.overload
        try:
            if self.library.match(overload) is not None:
                chosen = select([overload], self.unverified, self.library, self.workspace, self.device)
                return chosen.entries[overload]
            text = compose(subgraph, shapes, self.library)
        except UserError as error:
            return str(error)
        if not self.unverified:
            return f"it has no verified kernel; make one of its trace: {program_name()} fuse MODEL --compose --verify"
        kernel = self.library.parse(text, Path("composed") / f"{overload.partition('::')[2]}.py")
        match = Match(plans(overload)[0], kernel, None, True)
        return entry_of(match, kernel.listed | {NO_FLOATS})


def _is_dear(subgraph: Subgraph) -> bool:
    """Return True if the subgraph computes exponentials or similar for each element.

    Tensor cores idle while such a tile is computed.
    """
    bases = [call.overload.partition("::")[2].partition(".")[0] for call in subgraph.steps]
    return any(base.removesuffix("_backward") in _DEAR for base in bases)


def substitute(module: GraphModule, phase: str, number: int, kernels: FusedKernels) -> Iterator[Substitution]:
    """Put fused kernels into a graph. Yield the outcome for each subgraph, with the reason if it was not fused.

    `number` identifies the graph.
    """
    outcomes: dict[str, Substitution] = {}
    for kinds in PASSES:
        graph = FlowOfGraph(module)
        chosen, has_unserved = [], False
        for occurrence in find(graph.flow, kinds):
            shapes = [graph.flow.values[v].shape for v in occurrence.inputs]
            elements = max(math.prod(graph.flow.values[v].shape) for v in occurrence.outputs)
            reason = kernels.objection(occurrence, shapes, elements)
            overload = occurrence.subgraph.overload
            before = outcomes.get(overload) or Substitution(number, phase, occurrence.kind, overload, 0, reason)
            if kinds is PASSES[0] or not reason or overload not in outcomes:
                outcomes[overload] = replace(before, times=before.times + 1)
            chosen += [] if reason else [occurrence]
            has_unserved = has_unserved or bool(reason)
        if chosen:
            replace_calls(module, graph, chosen)
        if not has_unserved:
            break
    yield from outcomes.values()
