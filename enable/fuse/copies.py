"""Copies in a graph that nobody can tell from what they are copied from, such as those that dropout of 0 leaves."""

from __future__ import annotations

import operator

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from traces.overloads import kind


def drop_copies(module: GraphModule) -> int:
    """Have what reads a `clone` read its source, where both lie in memory alike; how many are gone.

    In a graph that writes nothing one can be told from the other only from outside: a copy stays where it leaves the
    graph, and its source comes in, is a constant, or leaves, too.
    """
    nodes = list(module.graph.nodes)
    if any(isinstance(n.target, OpOverload) and n.target._schema.is_mutable for n in nodes):
        return 0
    gone = 0
    for node in nodes:
        if node.target is torch.ops.aten.clone.default and _lies_alike(node) and not _told_apart(node):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
            gone += 1
    if gone:
        module.graph.lint()
        module.recompile()
    return gone


def _lies_alike(copy: Node) -> bool:
    made, source = copy.meta.get("val"), copy.args[0].meta.get("val")  # type: ignore[union-attr]
    if not isinstance(made, torch.Tensor) or not isinstance(source, torch.Tensor):
        return False
    strided = made.layout is source.layout is torch.strided
    return strided and made.stride() == source.stride()


def _told_apart(copy: Node) -> bool:
    source = copy.args[0]
    assert isinstance(source, Node)
    while _is_view(source):
        source = source.all_input_nodes[0]
    return _leaves(copy) and (source.op != "call_function" or _leaves(source))


def _leaves(node: Node) -> bool:
    """Whether it, or a view of it, is a result of the graph."""
    return any(user.op == "output" or (_is_view(user) and _leaves(user)) for user in node.users)


def _is_view(node: Node) -> bool:
    """Whether it is of its input's memory, as far as one can tell from here: one of several results may be."""
    if node.target is operator.getitem:
        return True
    return isinstance(node.target, OpOverload) and kind(node.target) == "view"
