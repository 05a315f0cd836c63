"""Remove copies from a graph that cannot be distinguished from their source, such as those left by dropout of 0."""

from __future__ import annotations

import operator

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from traces.overloads import kind


def drop_copies(module: GraphModule) -> int:
    """Replace each removable `clone` by its source and return how many were removed.

    The clone and its source must have the same strides. In a graph without writes, only code outside can distinguish
    them. A copy therefore stays if it leaves the graph and its source is an input, a constant or also an output.
    """
    nodes = list(module.graph.nodes)
    if any(isinstance(n.target, OpOverload) and n.target._schema.is_mutable for n in nodes):
        return 0
    removed = 0
    for node in nodes:
        if node.target is torch.ops.aten.clone.default and _lies_alike(node) and not _told_apart(node):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
            removed += 1
    if removed:
        module.graph.lint()
        module.recompile()
    return removed


def _lies_alike(copy: Node) -> bool:
    """Return True if the copy has the strides of its source."""
    result, source = copy.meta.get("val"), copy.args[0].meta.get("val")  # type: ignore[union-attr]
    if not isinstance(result, torch.Tensor) or not isinstance(source, torch.Tensor):
        return False
    strided = result.layout is source.layout is torch.strided
    return strided and result.stride() == source.stride()


def _told_apart(copy: Node) -> bool:
    """Return True if code outside the graph can distinguish the copy from its source."""
    source = copy.args[0]
    assert isinstance(source, Node)
    while _is_view(source):
        source = source.all_input_nodes[0]
    return _leaves(copy) and (source.op != "call_function" or _leaves(source))


def _leaves(node: Node) -> bool:
    """Return True if the node, or a view of it, is an output of the graph."""
    return any(user.op == "output" or (_is_view(user) and _leaves(user)) for user in node.users)


def _is_view(node: Node) -> bool:
    """Return True if the node may share memory with its input; one of several results may do so."""
    if node.target is operator.getitem:
        return True
    return isinstance(node.target, OpOverload) and kind(node.target) == "view"
