"""Graphs of torch.fx as dataflows, and subgraphs put into them as one call each."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from generate.subgraphs.finding import Occurrence
from traces.dataflow import Dataflow, FlowCall, ValueType, without_own_device
from traces.facts import tagged
from traces.overloads import base_name, bind, name_of, written
from traces.values import DTYPE_NAMES, encoded

_SIZED_VIEWS = tagged("sized_views")


class FlowOfGraph:
    """The dataflow of a graph of ATen calls, whose nodes tell in `meta["val"]` what they make. nodes: that each call
    of the flow is, and values: the number of the value that each node is.

    Sizes that change from call to call are those of the call for which the graph was made, if they are never 1;
    else 0, which no subgraph takes.
    """

    def __init__(self, module: GraphModule) -> None:
        self.nodes: list[Node] = []
        self.values: dict[Node, int] = {}
        self._types: list[ValueType] = []
        self._parts: dict[Node, list[int | None]] = {}
        self._calls: list[FlowCall] = []
        self._sources: set[int] = set()
        self._kept: set[int] = set()
        for node in module.graph.nodes:
            self._read(node)
        self.flow = Dataflow(self._types, self._calls, frozenset(self._kept), frozenset(self._sources))

    def _read(self, node: Node) -> None:
        found = node.meta.get("val")
        if node.op == "output":
            self._kept |= {self.values[n] for n in node.all_input_nodes if n in self.values}
        elif node.target is operator.getitem and node.args[0] in self._parts:
            part = self._parts[node.args[0]][node.args[1]]  # type: ignore[index]
            if part is not None:
                self.values[node] = part
        elif node.op == "call_function" and isinstance(node.target, OpOverload):
            self._call(node, node.target, found)
        elif isinstance(found, torch.Tensor):
            self._sources.add(self._value(node, found))
        else:  # what is no tensor, and no call of ATen, may read anything
            self._kept |= {self.values[n] for n in node.all_input_nodes if n in self.values}

    def _call(self, node: Node, op: OpOverload, found: Any) -> None:
        arguments = bind(op, tuple(node.args), node.kwargs)
        values = (n.meta.get("val") for n in node.all_input_nodes)
        arguments = without_own_device(arguments, (v for v in values if isinstance(v, torch.Tensor)))
        tree = {name: encoded(value, self._refer) for name, value in arguments.items()}
        if base_name(op) in _SIZED_VIEWS and _changes(arguments["size"]) == [0]:
            tree["size"][0] = -1  # as many as there are
        writes = tuple(self.values[arguments[n]] for n in sorted(written(op)) if isinstance(arguments[n], Node))
        if isinstance(found, tuple | list):
            results = [self._typed(t) if isinstance(t, torch.Tensor) else None for t in found]
            self._parts[node] = results
        elif isinstance(found, torch.Tensor):
            results = [self._value(node, found)]
        else:
            results = [None]
        self._calls.append(FlowCall(name_of(op), tree, tuple(results), writes))
        self.nodes.append(node)

    def _refer(self, value: Any) -> int | None:
        return self.values.get(value) if isinstance(value, Node) else None

    def _value(self, node: Node, tensor: torch.Tensor) -> int:
        self.values[node] = self._typed(tensor)
        return self.values[node]

    def _typed(self, tensor: torch.Tensor) -> int:
        plain = tensor.layout is torch.strided
        memory = int(tensor.untyped_storage()._cdata) if plain else None
        shape, stride = tuple(map(_size, tensor.shape)), tuple(map(_size, tensor.stride())) if plain else ()
        self._types.append(ValueType(DTYPE_NAMES[tensor.dtype], shape, stride, memory))
        return len(self._types) - 1


def _size(n: int | torch.SymInt) -> int:
    """Of a call, where it is no constant; 0 where it may be 1, or nobody knows yet."""
    if isinstance(n, int):
        return n
    known = getattr(n.node, "shape_env", None)  # of nested tensors there is none
    never_1 = known is not None and known.bound_sympy(n.node.expr).lower > 1
    return int(n.node.hint) if never_1 and n.node.hint is not None else 0


def _changes(sizes: Any) -> list[int]:
    """The places of sizes that are no constants; none in what is a dtype."""
    return [i for i, n in enumerate(sizes) if isinstance(n, Node)] if isinstance(sizes, list) else []


def replace_calls(module: GraphModule, graph: FlowOfGraph, chosen: Iterable[Occurrence]) -> None:
    """Put the operator of each of these in the place of its calls. What the calls made and others read is the
    operator's from then on; PyTorch knows the operators."""
    by_value: dict[int, list[Node]] = {}
    for node, value in graph.values.items():
        by_value.setdefault(value, []).append(node)
    makers = {value: nodes[0] for value, nodes in by_value.items()}
    for occurrence in chosen:
        _replace(module, graph, occurrence, makers, by_value)
    _sort(module)
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()


def _replace(
    module: GraphModule,
    graph: FlowOfGraph,
    occurrence: Occurrence,
    makers: dict[int, Node],
    by_value: dict[int, list[Node]],
) -> None:
    op = occurrence.subgraph.define()
    last = graph.nodes[occurrence.calls[-1]]
    with module.graph.inserting_after(last):
        call = module.graph.call_function(op, tuple(makers[v] for v in occurrence.inputs))
    made = [_meta(graph, by_value[v]) for v in occurrence.outputs]
    call.meta["val"] = made[0] if len(made) == 1 else tuple(made)
    after = call
    for k, value in enumerate(occurrence.outputs):
        new = call
        if len(occurrence.outputs) > 1:
            with module.graph.inserting_after(after):
                new = after = module.graph.call_function(operator.getitem, (call, k))
            new.meta["val"] = made[k]
        for node in by_value[value]:
            node.replace_all_uses_with(new, delete_user_cb=_outside(graph, occurrence, call))
        makers[value] = new


def _outside(graph: FlowOfGraph, occurrence: Occurrence, call: Node) -> Callable[[Node], bool]:
    """Whether a user is none of the calls that are replaced."""
    inside = {graph.nodes[i] for i in occurrence.calls} | {call}
    return lambda user: user not in inside


def _meta(graph: FlowOfGraph, nodes: list[Node]) -> Any:
    return nodes[0].meta["val"]


def _sort(module: GraphModule) -> None:
    """Put every node behind what it reads, and otherwise leave the order as it is."""
    order = list(module.graph.nodes)
    placed: set[Node] = set()
    sequence: list[Node] = []
    for start in order:
        pending = [start]
        while pending:
            node = pending[-1]
            lacking = [n for n in node.all_input_nodes if n not in placed]
            if node in placed:
                pending.pop()
            elif lacking:
                pending += lacking[::-1]
            else:
                placed.add(node)
                sequence.append(node)
                pending.pop()
    first = sequence[0]
    for node in sequence[1:]:
        first.append(node)
        first = node
