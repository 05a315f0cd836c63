"""Run a graph of ATen calls as lists of launches: `torch.compile` supplies it, and kernels are bound ahead of time.

A graph is cut at each call that is not served, draws random numbers or computes with ATen. The calls between two cuts
form a stretch. A stretch first runs call by call. The second run is watched, as a single call would be
(enable/serve/watching.py). From then on it is one program: all of its memory and launches, without Python in between.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from enable.serve.server import Declined, Server
from enable.serve.shortcuts import MISS, Shortcut
from enable.serve.watching import watched
from traces.lazy_bits import lazy_bits
from traces.overloads import moves_data, name_of, written


class Graph:
    """One graph, which runs on a list of its inputs and empties that list.

    Attributes:
        unserved: Number of calls that PyTorch's own kernels run, by overload; filled by the first run.
        substitutions: The outcome for each fused subgraph (enable/fuse/substitution.py), for reports.
    """

    def __init__(self, module: GraphModule, server: Server, substitutions: tuple[Any, ...] = ()) -> None:
        self._server, self.substitutions = server, substitutions
        self._placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._calls = [node for node in module.graph.nodes if node.op not in ("placeholder", "output")]
        self._output = next(node for node in module.graph.nodes if node.op == "output")
        self._parts: list[Stretch | Node] | None = None
        self._bits: list[frozenset[str]] = []  # lazy bits (conj, neg) of the inputs in the first run
        self._last = _last_uses(module.graph.nodes)
        self.unserved: Counter[str] = Counter()

    @property
    def server(self) -> Server:
        """Return the server that chooses kernels."""
        return self._server

    @property
    def stretches(self) -> list[Stretch]:
        """Return the parts that run as one list of launches each; empty before the first run."""
        return [part for part in self._parts or () if isinstance(part, Stretch)]

    def run(self, inputs: list[Any]) -> Any:
        """Return the graph's outputs."""
        values = dict(zip(self._placeholders, inputs, strict=True))
        bits = [lazy_bits(value) for value in inputs if isinstance(value, torch.Tensor)]
        inputs.clear()
        with torch._C._AutoDispatchBelowAutograd():
            if self._parts is None:
                self._parts, self._bits = self._first(values), bits
            else:
                for part in self._parts:
                    if isinstance(part, Stretch):
                        part.run(values, self._server, bits == self._bits)
                        self._let_go(values, part.nodes)
                    else:
                        values[part] = _called(part, values, self._server)
                        self._let_go(values, [part])
        return map_arg(self._output.args[0], values.__getitem__)

    def _first(self, values: dict[Node, Any]) -> list[Stretch | Node]:
        """Run call by call and cut the graph into stretches and single calls."""
        parts: list[Stretch | Node] = []
        tensors = {node for node, value in values.items() if isinstance(value, torch.Tensor)}
        has_static_sizes = len(tensors) == len(values)  # an input that is not a tensor may be a size that changes
        for node in self._calls:
            if has_static_sizes and self._fits(node, values):
                if not parts or not isinstance(parts[-1], Stretch):
                    parts.append(Stretch([]))
                parts[-1].nodes.append(node)  # type: ignore[union-attr]
            else:
                parts.append(node)
            values[node] = _called(node, values, self._server, self.unserved)
            if isinstance(values[node], torch.Tensor):
                tensors.add(node)
            self._let_go(values, [node])
        for part in parts:
            if isinstance(part, Stretch):
                part.bind(tensors, self._server.compiles)
        return parts

    def _fits(self, node: Node, values: dict[Node, Any]) -> bool:
        """Return True if a call may be part of a stretch."""
        if node.target is operator.getitem:
            return True
        if not isinstance(node.target, OpOverload):
            return False
        args, kwargs = _arguments(node, values)
        return _is_light(node.target) or self._server.directly(node.target, args, kwargs) is not None

    def _let_go(self, values: dict[Node, Any], nodes: Iterable[Node]) -> None:
        """Drop the values that no later node uses."""
        for node in nodes:
            for used in self._last.get(node, ()):
                values.pop(used, None)


@dataclass
class Stretch:
    """Calls without a cut between them.

    Attributes:
        nodes: The calls in order.
        inputs: Nodes outside the stretch whose values it uses.
        outputs: Nodes in the stretch whose values are used outside.
        shortcut: The watched launches, once there are any.
    """

    nodes: list[Node]
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    shortcut: Shortcut | None = None
    _program: Any = None
    _unclear: bool = False

    def bind(self, tensors: set[Node], compiles: bool) -> None:
        """Find inputs and outputs.

        `tensors` holds the nodes whose values were tensors in a run. `compiles` is True if there are launches to watch.
        """
        members = set(self.nodes)
        external = dict.fromkeys(used for node in self.nodes for used in node.all_input_nodes if used not in members)
        self.inputs = list(external)
        leaving = [node for node in self.nodes if any(user not in members for user in node.users)]
        self.outputs = [node for node in leaving if node in tensors]
        can_watch = compiles and set(self.inputs) <= tensors and len(self.outputs) == len(leaving)
        self._unclear = not (can_watch and self.inputs and self.outputs)

    def run(self, values: dict[Node, Any], server: Server, as_bound: bool) -> None:
        """Add the outputs to the values. `as_bound` is True if the inputs' lazy bits equal those of the first run."""
        if self._unclear or not as_bound:
            self._one_by_one(values, server)
            return
        inputs = [values[node] for node in self.inputs]
        answer = self._answer(inputs)
        if answer is MISS:
            if self.shortcut is None:
                answer = self._watched(inputs, values, server)
            else:
                self._one_by_one(values, server)
                return
        values.update(zip(self.outputs, answer, strict=True))

    def _answer(self, inputs: list[torch.Tensor]) -> Any:
        """Return the outputs by the native program or the shortcut, or MISS."""
        if self._program is not None:
            answer = self._program.run(inputs)
            return MISS if answer is None else answer
        return MISS if self.shortcut is None else self.shortcut.run(inputs, inputs[0].device.index)

    def _watched(self, inputs: list[torch.Tensor], values: dict[Node, Any], server: Server) -> list[Any]:
        """Run the stretch once by its wrappers and keep the shortcut and program that result."""

        def call() -> list[Any]:
            node_values = dict(zip(self.inputs, inputs, strict=True))
            for node in self.nodes:
                node_values[node] = _directly(node, node_values, server)
            return [node_values[node] for node in self.outputs]

        answer, self.shortcut = watched(call, inputs, many=True)
        self._unclear = self.shortcut is None
        if self.shortcut is not None and server.native is not None:
            self._program = server.native.graph(self.shortcut)
        return list(answer)

    def _one_by_one(self, values: dict[Node, Any], server: Server) -> None:
        """Run call by call."""
        for node in self.nodes:
            values[node] = _called(node, values, server)


def _arguments(node: Node, values: dict[Node, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the node's arguments with values in place of nodes."""
    args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
    return tuple(args), dict(kwargs)


def _is_light(op: OpOverload) -> bool:
    """Return True if the operator only allocates or makes views."""
    return not moves_data(op) and not written(op)


def _called(node: Node, values: dict[Node, Any], server: Server, unserved: Counter[str] | None = None) -> Any:
    """Run a node by the kernel that serves it, or else by PyTorch; `unserved` counts the latter."""
    if node.op == "get_attr":
        return operator.attrgetter(str(node.target))(node.graph.owning_module)
    args, kwargs = _arguments(node, values)
    if isinstance(node.target, OpOverload):
        answer = server.answer(node.target, args, kwargs)
        if answer is not MISS:
            return answer
        if unserved is not None and not _is_light(node.target):
            unserved[name_of(node.target)] += 1
    assert callable(node.target)
    return node.target(*args, **kwargs)


def _directly(node: Node, values: dict[Node, Any], server: Server) -> Any:
    """Run a node by its kernel's wrapper. An unserved node allocates or makes a view, and PyTorch runs it."""
    args, kwargs = _arguments(node, values)
    assert callable(node.target)
    direct: Callable[[], Any] | None = None
    if isinstance(node.target, OpOverload):
        direct = server.directly(node.target, args, kwargs)
    if direct is None:
        return node.target(*args, **kwargs)
    try:
        return direct()
    except Declined:
        return node.target(*args, **kwargs)


def _last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return for each node the values that no later node uses."""
    order = list(nodes)
    position = {node: i for i, node in enumerate(order)}
    last: dict[Node, list[Node]] = {}
    for node in order:
        users = sorted(node.users, key=position.__getitem__)
        if users and users[-1].op != "output":
            last.setdefault(users[-1], []).append(node)
    return last


def described(graphs: Iterable[Graph]) -> Iterator[str]:
    """Yield a line for each graph with its stretches, its launches and its unserved calls."""
    for number, graph in enumerate(graphs):
        launches = [len(s.shortcut.launches) for s in graph.stretches if s.shortcut]
        unserved = ", ".join(f"{n} {name}" for name, n in graph.unserved.most_common())
        yield f"graph {number}: {sum(launches)} launches in {len(launches)} of {len(graph.stretches)} stretches" + (
            f"; by PyTorch: {unserved}" if unserved else ""
        )
