"""Represent a dataflow as a graph of calls: dependencies, possible roles in a subgraph, and a valid order of execution.

Views compute nothing and cost nothing, so they are not nodes. A call that reads a view reads its root, the value that
was computed. The views between the two become steps of a subgraph that contains both ends.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from typing import Literal, TypeAlias

import torch

from traces.dataflow import Dataflow, FlowCall
from traces.facts import tagged
from traces.overloads import base_name, kind, resolve, written
from traces.values import Json, decoded
from verify.operators import elementwise

Role: TypeAlias = Literal["pointwise", "reduction", "product", "attention", "view", "other"]

_REDUCTIONS = tagged("fused_reductions")
_PRODUCTS = tagged("fused_products")
_ATTENTION = "_scaled_dot_product_"
_CASTS = tagged("casts")
_IN_ORDER = tagged("views_in_order")
_FLOATS = frozenset({"bfloat16", "float16", "float32", "float64"})
_PLAIN = _FLOATS | {"bool", "int32", "int64", "int16", "int8", "uint8"}
_BY_DATA = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)


def role(call: FlowCall) -> Role:
    """Return the call's role in a subgraph; "other" if it cannot be in one (`barrier` returns the reason)."""
    of_overload = _role(call.overload)
    return of_overload if of_overload == "view" or not barrier(call) else "other"


@cache
def _role(overload: str) -> Role:
    """Return an overload's role, regardless of its arguments."""
    op = resolve(overload)
    base = base_name(op)
    if kind(op) == "view":
        return "view"
    if base in _REDUCTIONS:
        return "reduction"
    if base in _PRODUCTS:
        return "product"
    if base.startswith(_ATTENTION):
        return "attention"
    return "pointwise" if base in _CASTS or elementwise(overload) else "other"


def barrier(call: FlowCall) -> str:
    """Return why a call cannot be in a subgraph, in one line; '' if it can."""
    op, name = resolve(call.overload), call.overload
    dropout = {n: v for n, v in call.arguments.items() if n == "dropout_p"}
    if kind(op, decoded(dropout, [], name)) == "random":
        return f"{name} draws random numbers, and draws have their order"
    if written(op):
        return f"{name} writes an argument, which others may read before and after"
    if kind(op) == "memory":
        return f"{name} is what the platform provides: memory, or an element for the host"
    if any(tag in op.tags for tag in _BY_DATA):
        return f"{name} decides by data how large its result is"
    if call.arguments.get("device") is not None:
        return f"{name} moves or makes its result on a device of its own"
    if _holds(call.arguments, "unsupported") or _holds(call.arguments, "sparse_coo"):
        return f"{name} takes a tensor that is not plain memory"
    if any(isinstance(v, list) and _holds(v, "tensor") for v in call.arguments.values()):
        return f"{name} takes a list of tensors"
    if not call.reads:
        return f"{name} takes no tensor"
    return "" if _role(name) != "other" else f"{name} is neither element by element, nor a reduction, nor a product"


def _holds(tree: Json, tag: str) -> bool:
    """Return True if an argument tree contains a tag."""
    if isinstance(tree, dict):
        return tag in tree or any(_holds(v, tag) for v in tree.values())
    return isinstance(tree, list) and any(_holds(v, tag) for v in tree)


class FlowGraph:
    """The calls in a dataflow, without views, in a valid order of execution; a group counts as one node."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self.roles = [role(call) for call in flow.calls]
        self._maker: dict[int, int] = {}  # index of the call that made a value
        known = set(flow.sources)  # a view of a view may return a value that already exists
        for i, call in enumerate(flow.calls):
            known.update(call.reads)
            self._maker.update((v, i) for v in call.results if v is not None and v not in known)
            known.update(v for v in call.results if v is not None)
        self.readers: dict[int, set[int]] = defaultdict(set)  # calls that read a root, without views
        self._needs: list[set[int]] = [set() for _ in flow.calls]
        self._depend()
        self.kept = {self.root(value) for value in flow.kept}
        nodes = [i for i, r in enumerate(self.roles) if r != "view"]
        self._order = nodes
        self._position = {node: position for position, node in enumerate(nodes)}
        self._members: dict[int, frozenset[int]] = {}  # a call's group

    def _depend(self) -> None:
        """Compute the dependencies between calls.

        A read depends on the call that made the value. Within one memory, a write depends on all earlier uses,
        and all later uses depend on it.
        """
        writers: dict[int, int] = {}
        users: dict[int, set[int]] = defaultdict(set)
        for i, call in enumerate(self.flow.calls):
            if self.roles[i] == "view" and not call.writes:
                continue
            written_memories = {self._memory(v) for v in call.writes}
            for value in call.reads:
                self.readers[self.root(value)].add(i)
                maker = self._maker.get(self.root(value))
                memory = self._memory(value)
                self._needs[i] |= {n for n in (maker, writers.get(memory)) if n is not None and n != i}
                users[memory].add(i)
            for memory in written_memories:
                self._needs[i] |= users[memory] - {i}
                writers[memory], users[memory] = i, {i}

    def _memory(self, value: int) -> int:
        """Return the identifier of a value's memory, or of its root's memory; a negative number if neither is known."""
        memory, root = self.flow.values[value].memory, self.root(value)
        memory = self.flow.values[root].memory if memory is None else memory
        return -1 - root if memory is None else memory

    def maker(self, value: int) -> int | None:
        """Return the index of the call that made a value; None if it comes from outside."""
        return self._maker.get(value)

    def views(self, value: int, in_order: bool = False) -> tuple[int, list[int]]:
        """Return the root of a value, and the views between the root and the value, in order.

        Args:
            value: Number of the value.
            in_order: True to stop at a view that selects elements or changes their order.
        """
        calls: list[int] = []
        while (producer := self._maker.get(value)) is not None and self.roles[producer] == "view":
            call = self.flow.calls[producer]
            if call.writes or not call.reads or (in_order and base_name(resolve(call.overload)) not in _IN_ORDER):
                break
            if _holds(call.arguments, "unsupported"):  # an argument that was not recorded, such as a symbolic size
                break
            calls.append(producer)
            value = call.reads[0]
        return value, calls[::-1]

    def root(self, value: int) -> int:
        """Return the value that this one is a view of, or the value itself."""
        return self.views(value)[0]

    def size(self, value: int) -> int:
        """Return the number of elements."""
        return math.prod(self.flow.values[value].shape)

    def nbytes(self, value: int) -> int:
        """Return the number of bytes."""
        dtype: torch.dtype = getattr(torch, self.flow.values[value].dtype)
        return self.size(value) * dtype.itemsize

    def is_plain(self, call: FlowCall) -> bool:
        """Return True if all operands and results are non-empty strided tensors of the usual dtypes."""
        values = [self.flow.values[v] for v in (*call.reads, *call.results) if v is not None]
        return all(v.dtype in _PLAIN and 0 not in v.shape and len(v.stride) == len(v.shape) for v in values)

    def is_free(self, call: int) -> bool:
        """Return True if a call is not in a group yet."""
        return call not in self._members

    def is_convex(self, group: Collection[int]) -> bool:
        """Return True if no path leaves a set of calls and re-enters it."""
        return self._behind(group) is not None

    def join(self, group: frozenset[int]) -> None:
        """Merge a convex set of free calls into one node, and move its dependents behind it."""
        behind = self._behind(group)
        assert behind is not None
        positions = [self._position[i] for i in group]
        lo, hi = min(positions), max(positions) + 1
        span = self._order[lo:hi]
        before = [n for n in span if n not in behind and n not in group]
        self._order[lo:hi] = [*before, *sorted(group), *(n for n in span if n in behind)]
        self._position.update((n, lo + k) for k, n in enumerate(self._order[lo:hi]))
        self._members.update(dict.fromkeys(group, group))

    def _behind(self, group: Collection[int]) -> set[int] | None:
        """Return the calls that depend on the set and lie between its first and last call.

        None if the set depends on one of them. A group is contiguous in the order, and is treated as a whole.
        """
        positions = [self._position[i] for i in group]
        lo, hi = min(positions), max(positions) + 1
        inside, behind = set(group), set[int]()
        for node in self._order[lo:hi]:
            members = self._members.get(node, frozenset((node,)))
            needs = set[int]().union(*(self._needs[m] for m in members))
            if node in inside:
                if needs & behind:
                    return None
            elif node not in behind and needs & (inside | behind):
                behind |= members
        return behind

    def needed(self, call: int) -> Iterator[tuple[int, int]]:
        """Yield each tensor that a call reads, with the free call that computed it, or -1."""
        for value in dict.fromkeys(self.flow.calls[call].reads):
            maker = self._maker.get(self.root(value))
            yield value, maker if maker is not None and self.is_free(maker) else -1
