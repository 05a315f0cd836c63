"""Find the subgraphs in a dataflow that are worth fusing.

A subgraph grows from an anchor. Attention comes first, then products with the elementwise calls on their results, then
reductions with the elementwise calls before and after, then elementwise chains. A subgraph stays convex (no path
leaves it and re-enters) and free of side effects. A view is a step if both its ends are inside, and stays outside if
only one is.
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
# Kinds to search for in each pass. If kernels for some kinds are missing, later passes search the remaining calls for
# simpler kinds.
PASSES: tuple[tuple[FusionKind, ...], ...] = (KINDS, ("pointwise", "reduction"), ("pointwise",))
MAX_INPUTS = 8
MAX_COMPUTING = 24  # maximum number of calls in a subgraph, without views
_SOFTMAX = tagged("softmaxes")
_SIZED_VIEWS = tagged("sized_views")


@dataclass(frozen=True)
class Occurrence:
    """A subgraph's position in a dataflow.

    Attributes:
        subgraph: Subgraph.
        kind: Kind.
        calls: Indices of its steps.
        inputs: Numbers of the values that are its inputs a0, a1, and so on.
        outputs: Numbers of its results, in the order of the subgraph's outputs. These are the values that are kept or
            read outside, directly or through a view.
        nbytes: Bytes of memory traffic that one kernel for all steps saves.
        launches: Launches that it saves.
    """

    subgraph: Subgraph
    kind: FusionKind
    calls: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    nbytes: int
    launches: int


def find(flow: Dataflow, kinds: Collection[FusionKind] = KINDS, taken: Collection[Occurrence] = ()) -> list[Occurrence]:
    """Return the subgraphs of these kinds that are worth fusing, in the order of their first calls.

    No call except a view is in two of them, and all of them can be fused at once, together with those in `taken`.

    Args:
        flow: Dataflow.
        kinds: Kinds to search for.
        taken: Subgraphs that were found in this flow before; their calls are not available.
    """
    graph = FlowGraph(flow)
    for before in taken:
        graph.join(frozenset(i for i in before.calls if graph.roles[i] != "view"))
    occurrences: list[Occurrence] = []
    for kind in (k for k in _GROWING if k in kinds):
        grow, anchors = _GROWING[kind]
        for anchor, role in enumerate(graph.roles):
            if role in anchors and graph.is_free(anchor) and graph.is_plain(flow.calls[anchor]):
                group = grow(graph, anchor)
                if len(group) > 1 and (occurrence := _occurrence(graph, kind, group)) is not None:
                    graph.join(group)
                    occurrences.append(occurrence)
    return sorted(occurrences, key=lambda o: o.calls)


def barriers(flow: Dataflow) -> dict[str, str]:
    """Return by overload why its calls cannot be in a subgraph."""
    return {call.overload: reason for call in flow.calls if (reason := barrier(call))}


Group: TypeAlias = frozenset[int]
Fits: TypeAlias = Callable[[FlowCall], bool]


def _attention(graph: FlowGraph, anchor: int) -> Group:
    """Return attention with the casts and pointwise steps around it, or a softmax between two products."""
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
    """Return a product with the elementwise calls on its result.

    A cast to a wider type is left to the computation that reads it, which then reads fewer bytes. Calls that only
    reductions read are left to these.
    """
    of_size = _of_sizes(graph, _sizes(graph, anchor))

    def fits(call: FlowCall) -> bool:
        return of_size(call) and not _widened(graph, call) and not _reduced_alone(graph, call)

    return _grown(graph, frozenset((anchor,)), fits, before=False)


def _reduced_alone(graph: FlowGraph, call: FlowCall) -> bool:
    """Return True if only reductions read the call's results."""
    results = [v for v in call.results if v is not None]
    readers = [graph.roles[i] for v in results for i in graph.readers.get(v, ())]
    has_kept_result = any(v in graph.kept for v in results)
    return bool(readers) and not has_kept_result and all(role == "reduction" for role in readers)


def _widened(graph: FlowGraph, call: FlowCall) -> bool:
    """Return True if the call is a cast to a wider type for a pointwise call or a reduction."""
    results = [v for v in call.results if v is not None]
    wider = len(call.reads) == len(results) == 1 and graph.nbytes(results[0]) > graph.nbytes(call.reads[0])
    return wider and any(graph.roles[i] in ("pointwise", "reduction") for i in graph.readers.get(results[0], ()))


def _reduction(graph: FlowGraph, anchor: int) -> Group:
    """Return a reduction with the elementwise calls on its inputs and on its results."""
    call = graph.flow.calls[anchor]
    input_size = max(map(graph.size, call.reads))
    before = _grown(graph, frozenset((anchor,)), _of_sizes(graph, {input_size}), after=False)
    return _grown(graph, before, _of_sizes(graph, {input_size} | _sizes(graph, anchor)), before=False)


def _pointwise(graph: FlowGraph, anchor: int) -> Group:
    """Return a chain of elementwise calls over one range of elements."""
    return _grown(graph, frozenset((anchor,)), _of_sizes(graph, _sizes(graph, anchor)))


# Kinds in search order, with their anchors' roles.
_GROWING: dict[FusionKind, tuple[Callable[[FlowGraph, int], Group], tuple[Role, ...]]] = {
    "attention": (_attention, ("attention", "reduction")),
    "product": (_product, ("product",)),
    "reduction": (_reduction, ("reduction",)),
    "pointwise": (_pointwise, ("pointwise",)),
}


def _sizes(graph: FlowGraph, call: int) -> set[int]:
    """Return the element counts of a call's results."""
    return {graph.size(v) for v in graph.flow.calls[call].results if v is not None}


def _of_sizes(graph: FlowGraph, sizes: set[int]) -> Fits:
    """Return a predicate for calls whose results have these element counts."""
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
    """Return the group with all pointwise neighbours that fit.

    Args:
        graph: Graph.
        group: Calls to start with.
        fits: Predicate for a neighbour.
        before: True to add producers.
        after: True to add consumers.
        in_order: True to cross only views that keep the elements' order.
        outputs: Maximum number of outputs; 0 for no limit.
    """
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
    """Return the group with one more call; None if the result cannot be fused."""
    larger = group | {call}
    if len({graph.flow.calls[i].phase for i in larger}) > 1:  # different phases run at different times, in other graphs
        return None
    if len(larger) > MAX_COMPUTING or not graph.is_free(call) or not graph.is_plain(graph.flow.calls[call]):
        return None
    if not graph.is_convex(larger):
        return None
    inputs = _inputs(graph, larger, in_order)
    return larger if inputs is not None and len(inputs) <= MAX_INPUTS else None


def _producers(graph: FlowGraph, group: Group, in_order: bool) -> Iterator[int]:
    """Yield the free calls whose results the group reads, across views."""
    for i in sorted(group, reverse=True):
        for value in graph.flow.calls[i].reads:
            root, _ = graph.views(value, in_order)
            maker = graph.maker(root)
            if maker is not None and maker not in group and graph.roles[maker] != "view" and graph.is_free(maker):
                yield maker


def _consumers(graph: FlowGraph, group: Group, in_order: bool) -> Iterator[int]:
    """Yield the free calls that read the group's results, across views."""
    results = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    for value in sorted(results):
        for i in sorted(graph.readers.get(value, ())):
            reads = graph.flow.calls[i].reads
            if i not in group and graph.is_free(i) and any(graph.views(v, in_order)[0] in results for v in reads):
                yield i


def _inputs(graph: FlowGraph, group: Group, in_order: bool) -> list[int] | None:
    """Return the values from outside, in the order of their first use.

    None if one of them is a view of a result inside the group, such as a view with the elements in another order.
    """
    results = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    outside: dict[int, None] = {}
    for i in sorted(group):
        for value in graph.flow.calls[i].reads:
            root, _ = graph.views(value, in_order)
            if root in results:
                continue
            if graph.root(value) in results:
                return None
            outside.setdefault(value)
    return list(outside)


def _outputs(graph: FlowGraph, group: Group) -> list[int]:
    """Return the results that are kept or read outside the group."""
    results = [v for i in sorted(group) for v in graph.flow.calls[i].results if v is not None]
    return [v for v in results if v in graph.kept or graph.readers.get(v, set()) - group]


def _occurrence(graph: FlowGraph, kind: FusionKind, group: Group) -> Occurrence | None:
    """Return the group as a subgraph; None if nothing outside reads its results."""
    in_order = kind != "attention"
    inputs, outputs = _inputs(graph, group, in_order), _outputs(graph, group)
    if inputs is None or not outputs:
        return None
    results = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    steps = set(group)
    for i in group:
        for value in graph.flow.calls[i].reads:
            root, views = graph.views(value, in_order)
            steps |= set(views) if root in results else set()
    calls = tuple(sorted(steps))
    numbers = {value: k for k, value in enumerate(inputs)}
    written: list[SubgraphCall] = []
    count = len(inputs)
    for i in calls:
        call = graph.flow.calls[i]
        written.append(SubgraphCall(call.overload, _arguments(call, numbers), len(call.results)))
        numbers.update((v, count + k) for k, v in enumerate(call.results) if v is not None and v not in numbers)
        count += len(call.results)
    subgraph_inputs = tuple(SubgraphInput.like(graph.flow.values[v].dtype, graph.flow.values[v].shape) for v in inputs)
    subgraph = Subgraph(subgraph_inputs, tuple(written), tuple(numbers[v] for v in outputs))
    return Occurrence(
        subgraph, kind, calls, tuple(inputs), tuple(outputs), _saved(graph, group, inputs, outputs), len(group) - 1
    )


def _arguments(call: FlowCall, numbers: dict[int, int]) -> Json:
    """Return a step's arguments with the subgraph's value numbers.

    A view to a fixed size gets -1 for its first dimension, so that the subgraph applies to any batch size.
    """
    arguments: dict[str, Any] = {name: _renumbered(value, numbers) for name, value in call.arguments.items()}
    size = arguments.get("size")
    if base_name(resolve(call.overload)) in _SIZED_VIEWS and isinstance(size, list) and size and -1 not in size:
        arguments["size"] = [-1, *size[1:]]
    return arguments


def _renumbered(tree: Json, numbers: dict[int, int]) -> Json:
    """Replace value numbers in an argument tree."""
    if isinstance(tree, dict):
        if tree.keys() == {"tensor"}:
            return {"tensor": numbers[tree["tensor"]]}
        return {name: _renumbered(value, numbers) for name, value in tree.items()}
    return [_renumbered(value, numbers) for value in tree] if isinstance(tree, list) else tree


def _saved(graph: FlowGraph, group: Group, inputs: list[int], outputs: list[int]) -> int:
    """Return the bytes that one kernel does not have to write or read again."""
    reads = [graph.root(v) for i in group for v in dict.fromkeys(graph.flow.calls[i].reads)]
    results = {v for i in group for v in graph.flow.calls[i].results if v is not None}
    read = {root: reads.count(root) for root in reads}
    again = sum(graph.nbytes(v) * n for v, n in read.items() if v in results)
    shared = sum(graph.nbytes(v) * (read[graph.root(v)] - 1) for v in {graph.root(v) for v in inputs})
    unread = sum(graph.nbytes(v) for v in results - set(outputs))
    return again + shared + unread
