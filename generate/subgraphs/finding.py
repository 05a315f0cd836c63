"""Finding the subgraphs of a dataflow that are worth fusing.

A subgraph grows from an anchor: attention first, then products with what is done to their results, then reductions with
what stands before and after, then chains element by element. It stays convex (no path leaves it and comes back) and
free of effects; views are steps where both ends are inside, and stay outside where only one is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from generate.subgraphs.flowgraph import FlowGraph, Role, barrier
from traces.dataflow import Dataflow, FlowCall
from traces.facts import tagged
from traces.overloads import base_name, resolve
from traces.subgraphs import Subgraph, SubgraphCall, SubgraphInput
from traces.values import Json

FusionKind: TypeAlias = Literal["pointwise", "reduction", "product", "attention"]
KINDS: tuple[FusionKind, ...] = get_args(FusionKind)
PASSES: tuple[tuple[FusionKind, ...], ...] = (KINDS, ("pointwise", "reduction"), ("pointwise",))
# Where some kinds have no kernel: what to look for then, in what these leave.
MAX_INPUTS = 8
MAX_COMPUTING = 24  # calls of a subgraph that are no views
_SOFTMAX = tagged("softmaxes")
_SIZED_VIEWS = tagged("sized_views")


@dataclass(frozen=True)
class Occurrence:
    """Where a subgraph stands in a dataflow. calls: indices of its steps. inputs: numbers of the values that are its
    a0, a1, and so on. outputs: numbers of the values that it gives, in the order of the subgraph's outputs: those that
    something outside reads, itself or by a view, or that are kept. nbytes, launches: saved by one kernel for all."""

    subgraph: Subgraph
    kind: FusionKind
    calls: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nbytes: int
    launches: int


def find(flow: Dataflow, kinds: Collection[FusionKind] = KINDS, taken: Collection[Occurrence] = ()) -> list[Occurrence]:
    """All that is worth fusing of these kinds, in the order of the first calls. No call is in two of them but views,
    and all can be fused at once; with those that are taken, too, which were found in this flow before."""
    graph = FlowGraph(flow)
    for before in taken:
        graph.join(frozenset(i for i in before.calls if graph.roles[i] != "view"))
    found: list[Occurrence] = []
    for kind in (k for k in _GROWING if k in kinds):
        grow, anchors = _GROWING[kind]
        for anchor, role in enumerate(graph.roles):
            if role in anchors and graph.is_free(anchor) and graph.is_plain(flow.calls[anchor]):
                group = grow(graph, anchor)
                if len(group) > 1 and (occurrence := _occurrence(graph, kind, group)) is not None:
                    graph.join(group)
                    found.append(occurrence)
    return sorted(found, key=lambda o: o.calls)


def barriers(flow: Dataflow) -> dict[str, str]:
    """By overload, why its calls are in no subgraph."""
    return {call.overload: reason for call in flow.calls if (reason := barrier(call))}


Group: TypeAlias = frozenset[int]
Fits: TypeAlias = Callable[[FlowCall], bool]


def _attention(graph: FlowGraph, anchor: int) -> Group:
    """Attention with the casts and pointwise steps around it; likewise softmax between two products."""
    group: Group = frozenset((anchor,))
    if graph.roles[anchor] == "attention":
        sizes = {graph.size(v) for v in graph.flow.calls[anchor].reads} | _sizes(graph, anchor)
        return _grown(graph, group, _of_sizes(graph, sizes), in_order=False)
    if base_name(resolve(graph.flow.calls[anchor].overload)) not in _SOFTMAX:
        return frozenset()
    group = _grown(graph, group, _of_sizes(graph, _sizes(graph, anchor)), in_order=False, outputs=1)
    before = [i for i in _producers(graph, group, in_order=False) if graph.roles[i] == "product"]
    after = [i for i in _consumers(graph, group, in_order=False) if graph.roles[i] == "product"]
    for product in (*before[:1], *after[:1]):
        group = _with(graph, group, product, in_order=False) or group
    products = [i for i in group if graph.roles[i] == "product"]
    return group if len(products) == 2 else frozenset()


def _product(graph: FlowGraph, anchor: int) -> Group:
    """A product and what is done to each element of its result; a cast to a wider type is left to what computes with
    it, which then reads fewer bytes, and what only reductions read to these."""
    of_size = _of_sizes(graph, _sizes(graph, anchor))

    def fits(call: FlowCall) -> bool:
        return of_size(call) and not _widened(graph, call) and not _reduced_alone(graph, call)

    return _grown(graph, frozenset((anchor,)), fits, before=False)


def _reduced_alone(graph: FlowGraph, call: FlowCall) -> bool:
    """Whether nothing but reductions reads its results."""
    made = [v for v in call.results if v is not None]
    readers = [graph.roles[i] for v in made for i in graph.readers.get(v, ())]
    kept = any(v in graph.kept for v in made)
    return bool(readers) and not kept and all(role == "reduction" for role in readers)


def _widened(graph: FlowGraph, call: FlowCall) -> bool:
    """Whether it is a cast to a wider type for a pointwise call or a reduction."""
    made = [v for v in call.results if v is not None]
    wider = len(call.reads) == len(made) == 1 and graph.nbytes(made[0]) > graph.nbytes(call.reads[0])
    return wider and any(graph.roles[i] in ("pointwise", "reduction") for i in graph.readers.get(made[0], ()))


def _reduction(graph: FlowGraph, anchor: int) -> Group:
    """A reduction, what makes the elements that it reduces, and what is done with its results."""
    call = graph.flow.calls[anchor]
    whole = max(map(graph.size, call.reads))
    before = _grown(graph, frozenset((anchor,)), _of_sizes(graph, {whole}), after=False)
    return _grown(graph, before, _of_sizes(graph, {whole} | _sizes(graph, anchor)), before=False)


def _pointwise(graph: FlowGraph, anchor: int) -> Group:
    """What is done to each element, over one range of elements."""
    return _grown(graph, frozenset((anchor,)), _of_sizes(graph, _sizes(graph, anchor)))


# In the order in which they are looked for, with the roles of what they grow from.
_GROWING: dict[FusionKind, tuple[Callable[[FlowGraph, int], Group], tuple[Role, ...]]] = {
    "attention": (_attention, ("attention", "reduction")),
    "product": (_product, ("product",)),
    "reduction": (_reduction, ("reduction",)),
    "pointwise": (_pointwise, ("pointwise",)),
}


def _sizes(graph: FlowGraph, call: int) -> set[int]:
    return {graph.size(v) for v in graph.flow.calls[call].results if v is not None}


def _of_sizes(graph: FlowGraph, sizes: set[int]) -> Fits:
    """Pointwise calls with results of so many elements."""
    return lambda call: {graph.size(v) for v in call.results if v is not None} <= sizes


def _grown(  # noqa: PLR0913 - each is a way to grow
    graph: FlowGraph,
    group: Group,
    fits: Fits,
    before: bool = True,
    after: bool = True,
    in_order: bool = True,
    outputs: int = 0,
) -> Group:
    """The set with all neighbours that are pointwise and fit, as long as there are any. in_order: only over views that
    leave the elements in order. outputs: at most so many, if not 0."""
    tried = set[int]()
    while True:
        near = [*(_producers(graph, group, in_order) if before else ())]
        near += _consumers(graph, group, in_order) if after else ()
        new = next((i for i in near if i not in tried and i not in group), None)
        if new is None:
            return group
        tried.add(new)
        if graph.roles[new] != "pointwise" or not fits(graph.flow.calls[new]):
            continue
        larger = _with(graph, group, new, in_order)
        if larger is not None and (not outputs or len(_outputs(graph, larger)) <= outputs):
            group = larger
            tried = {i for i in tried if i in group}


def _with(graph: FlowGraph, group: Group, call: int, in_order: bool) -> Group | None:
    """The set with one more call; None where that is none that can be fused."""
    larger = group | {call}
    if len({graph.flow.calls[i].phase for i in larger}) > 1:  # what a program does at different times, in other graphs
        return None
    if len(larger) > MAX_COMPUTING or not graph.is_free(call) or not graph.is_plain(graph.flow.calls[call]):
        return None
    if not graph.is_convex(larger):
        return None
    inputs = _inputs(graph, larger, in_order)
    return larger if inputs is not None and len(inputs) <= MAX_INPUTS else None


def _producers(graph: FlowGraph, group: Group, in_order: bool) -> Iterator[int]:
    for i in sorted(group, reverse=True):
        for value in graph.flow.calls[i].reads:
            root, _ = graph.views(value, in_order)
            maker = graph.maker(root)
            if maker is not None and maker not in group and graph.roles[maker] != "view" and graph.is_free(maker):
                yield maker


def _consumers(graph: FlowGraph, group: Group, in_order: bool) -> Iterator[int]:
    made = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    for value in sorted(made):
        for i in sorted(graph.readers.get(value, ())):
            reads = graph.flow.calls[i].reads
            if i not in group and graph.is_free(i) and any(graph.views(v, in_order)[0] in made for v in reads):
                yield i


def _inputs(graph: FlowGraph, group: Group, in_order: bool) -> list[int] | None:
    """The values that come from outside, in the order of their first use; None if one of them is a view of what is made
    inside, as is one with elements in another order."""
    made = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    found: dict[int, None] = {}
    for i in sorted(group):
        for value in graph.flow.calls[i].reads:
            root, _ = graph.views(value, in_order)
            if root in made:
                continue
            if graph.root(value) in made:
                return None
            found.setdefault(value)
    return list(found)


def _outputs(graph: FlowGraph, group: Group) -> list[int]:
    made = [v for i in sorted(group) for v in graph.flow.calls[i].results if v is not None]
    return [v for v in made if v in graph.kept or graph.readers.get(v, set()) - group]


def _occurrence(graph: FlowGraph, kind: FusionKind, group: Group) -> Occurrence | None:
    """None where nothing outside reads anything of it."""
    in_order = kind != "attention"
    inputs, outputs = _inputs(graph, group, in_order), _outputs(graph, group)
    if inputs is None or not outputs:
        return None
    made = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    steps = set(group)
    for i in group:
        for value in graph.flow.calls[i].reads:
            root, views = graph.views(value, in_order)
            steps |= set(views) if root in made else set()
    calls = tuple(sorted(steps))
    numbers = {value: k for k, value in enumerate(inputs)}
    written: list[SubgraphCall] = []
    count = len(inputs)
    for i in calls:
        call = graph.flow.calls[i]
        written.append(SubgraphCall(call.overload, _arguments(call, numbers), len(call.results)))
        numbers.update((v, count + k) for k, v in enumerate(call.results) if v is not None and v not in numbers)
        count += len(call.results)
    given = tuple(SubgraphInput.like(graph.flow.values[v].dtype, graph.flow.values[v].shape) for v in inputs)
    subgraph = Subgraph(given, tuple(written), tuple(numbers[v] for v in outputs))
    return Occurrence(
        subgraph, kind, calls, tuple(inputs), tuple(outputs), _saved(graph, group, inputs, outputs), len(group) - 1
    )


def _arguments(call: FlowCall, numbers: dict[int, int]) -> Json:
    """The arguments of a step. A view says how many elements each dimension has but the first, of which any number
    will do."""
    arguments: dict[str, Any] = {name: _renumbered(value, numbers) for name, value in call.arguments.items()}
    size = arguments.get("size")
    if base_name(resolve(call.overload)) in _SIZED_VIEWS and isinstance(size, list) and size and -1 not in size:
        arguments["size"] = [-1, *size[1:]]
    return arguments


def _renumbered(tree: Json, numbers: dict[int, int]) -> Json:
    if isinstance(tree, dict):
        if tree.keys() == {"tensor"}:
            return {"tensor": numbers[tree["tensor"]]}
        return {name: _renumbered(value, numbers) for name, value in tree.items()}
    return [_renumbered(value, numbers) for value in tree] if isinstance(tree, list) else tree


def _saved(graph: FlowGraph, group: Group, inputs: list[int], outputs: list[int]) -> int:
    """Bytes that one kernel neither writes nor reads again."""
    reads = [graph.root(v) for i in group for v in dict.fromkeys(graph.flow.calls[i].reads)]
    made = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    read = {root: reads.count(root) for root in reads}
    again = sum(graph.nbytes(v) * n for v, n in read.items() if v in made)
    shared = sum(graph.nbytes(v) * (read[graph.root(v)] - 1) for v in {graph.root(v) for v in inputs})
    unread = sum(graph.nbytes(v) for v in made - set(outputs))
    return again + shared + unread
