"""Read torch.fx graphs as dataflows, and replace subgraphs in them by one call each."""

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
    """The dataflow of a graph of ATen calls, read from the nodes' `meta["val"]`.

    A size that changes from call to call takes its value in the call for which the graph was made, if it is never 1.
    Otherwise it is 0, and no subgraph accepts it.

    Attributes:
        flow: The dataflow.
        nodes: The node for each call in the flow.
        values: The value number for each node.
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
        """Add a node to the flow."""
        value = node.meta.get("val")
        if node.op == "output":
            self._kept |= {self.values[n] for n in node.all_input_nodes if n in self.values}
        elif node.target is operator.getitem and node.args[0] in self._parts:
            part = self._parts[node.args[0]][node.args[1]]  # type: ignore[index]
            if part is not None:
                self.values[node] = part
        elif node.op == "call_function" and isinstance(node.target, OpOverload):
            self._call(node, node.target, value)
        elif isinstance(value, torch.Tensor):
            self._sources.add(self._value(node, value))
        else:  # a node that is neither a tensor nor an ATen call may read any value
            self._kept |= {self.values[n] for n in node.all_input_nodes if n in self.values}

    def _call(self, node: Node, op: OpOverload, example: Any) -> None:
        """Add an ATen call with its arguments, results and writes."""
        arguments = bind(op, tuple(node.args), node.kwargs)
        values = (n.meta.get("val") for n in node.all_input_nodes)
        arguments = without_own_device(arguments, (v for v in values if isinstance(v, torch.Tensor)))
        tree = {name: encoded(value, self._refer) for name, value in arguments.items()}
        if base_name(op) in _SIZED_VIEWS and _changes(arguments["size"]) == [0]:
            tree["size"][0] = -1  # a changing leading size is inferred
        writes = tuple(self.values[arguments[n]] for n in sorted(written(op)) if isinstance(arguments[n], Node))
        if isinstance(example, tuple | list):
            results = [self._typed(t) if isinstance(t, torch.Tensor) else None for t in example]
            self._parts[node] = results
        elif isinstance(example, torch.Tensor):
            results = [self._value(node, example)]
        else:
            results = [None]
        self._calls.append(FlowCall(name_of(op), tree, tuple(results), writes))
        self.nodes.append(node)

    def _refer(self, value: Any) -> int | None:
        """Return a node's value number."""
        return self.values.get(value) if isinstance(value, Node) else None

    def _value(self, node: Node, tensor: torch.Tensor) -> int:
        """Assign the next value number to the node's tensor and return it."""
        self.values[node] = self._typed(tensor)
        return self.values[node]

    def _typed(self, tensor: torch.Tensor) -> int:
        """Record a tensor's type and return its number."""
        is_strided = tensor.layout is torch.strided
        memory = int(tensor.untyped_storage()._cdata) if is_strided else None
        shape, stride = tuple(map(_size, tensor.shape)), tuple(map(_size, tensor.stride())) if is_strided else ()
        self._types.append(ValueType(DTYPE_NAMES[tensor.dtype], shape, stride, memory))
        return len(self._types) - 1


def _size(n: int | torch.SymInt) -> int:
    """Return a constant size, or the example's size if it is never 1; otherwise 0."""
    if isinstance(n, int):
        return n
    shape_env = getattr(n.node, "shape_env", None)  # nested tensors have none
    never_1 = shape_env is not None and shape_env.bound_sympy(n.node.expr).lower > 1
    return int(n.node.hint) if never_1 and n.node.hint is not None else 0


def _changes(sizes: Any) -> list[int]:
    """Return the positions of sizes that are not constant; empty if `sizes` is a dtype."""
    return [i for i, n in enumerate(sizes) if isinstance(n, Node)] if isinstance(sizes, list) else []


def replace_calls(module: GraphModule, graph: FlowOfGraph, chosen: Iterable[Occurrence]) -> None:
    """Replace each occurrence by one call to its operator, which PyTorch must know.

    Later nodes read the operator's results in place of the replaced calls'.
    """
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
    """Insert one occurrence's operator after its last call, and redirect the users of its outputs."""
    op = occurrence.subgraph.define()
    last = graph.nodes[occurrence.calls[-1]]
    with module.graph.inserting_after(last):
        call = module.graph.call_function(op, tuple(makers[v] for v in occurrence.inputs))
    output_metas = [_meta(graph, by_value[v]) for v in occurrence.outputs]
    call.meta["val"] = output_metas[0] if len(output_metas) == 1 else tuple(output_metas)
    after = call
    for k, value in enumerate(occurrence.outputs):
        output_node = call
        if len(occurrence.outputs) > 1:
            with module.graph.inserting_after(after):
                output_node = after = module.graph.call_function(operator.getitem, (call, k))
            output_node.meta["val"] = output_metas[k]
        for node in by_value[value]:
            node.replace_all_uses_with(output_node, delete_user_cb=_outside(graph, occurrence, call))
        makers[value] = output_node


def _outside(graph: FlowOfGraph, occurrence: Occurrence, call: Node) -> Callable[[Node], bool]:
    """Return a predicate that is True for users outside the replaced calls."""
    inside = {graph.nodes[i] for i in occurrence.calls} | {call}
    return lambda user: user not in inside


def _meta(graph: FlowOfGraph, nodes: list[Node]) -> Any:
    """Return the example value that the nodes share."""
    return nodes[0].meta["val"]


def _sort(module: GraphModule) -> None:
    """Move every node behind its inputs and otherwise keep the order."""
    order = list(module.graph.nodes)
    placed: set[Node] = set()
    sequence: list[Node] = []
    for start in order:
        pending = [start]
        while pending:
            node = pending[-1]
            missing = [n for n in node.all_input_nodes if n not in placed]
            if node in placed:
                pending.pop()
            elif missing:
                pending += missing[::-1]
            else:
                placed.add(node)
                sequence.append(node)
                pending.pop()
    first = sequence[0]
    for node in sequence[1:]:
        first.append(node)
        first = node
