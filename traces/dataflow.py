"""The dataflow of a program: every call in order, and which call made the values that another reads.

A value is what a tensor held at one time: a write in place makes new values of all that lies in the memory written. So
each value is made once, by one call or by what comes before all of them, and may be read by any number of later ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from traces.values import Json


@dataclass(frozen=True)
class ValueType:
    """What a value looks like. shape, stride: in elements. memory: values of the same number lie in one storage;
    None: in one of its own."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    memory: int | None = None


@dataclass(frozen=True)
class FlowCall:
    """A call. arguments: by schema name, as a packed tree in which {"tensor": k} is value k of the dataflow. results:
    the value of each thing that it returns, None for what is no tensor; of a tensor that it wrote, the value after.
    writes: values, as before, of the tensors that it writes. phase, module: where it happened, for display. stored: id
    of the stored call that holds the contents of its arguments, None where there is none."""

    overload: str
    arguments: Json
    results: tuple[int | None, ...]
    writes: tuple[int, ...] = ()
    phase: str = ""
    module: str = ""
    stored: int | None = None

    @property
    def reads(self) -> list[int]:
        """The numbers of the values that it takes, in their order."""
        return list(numbers(self.arguments))


@dataclass(frozen=True)
class Dataflow:
    """Calls in order, between values. kept: values that something else reads or that live on, such as outputs,
    parameters and gradients. sources: values that no call here makes."""

    values: list[ValueType]
    calls: list[FlowCall]
    kept: frozenset[int] = field(default_factory=frozenset)
    sources: frozenset[int] = field(default_factory=frozenset)


def numbers(tree: Json) -> Iterator[int]:
    """The numbers of the values in a packed tree, in their order."""
    if isinstance(tree, dict):
        if tree.keys() == {"tensor"}:
            yield tree["tensor"]
            return
        tree = list(tree.values())
    if isinstance(tree, list):
        for value in tree:
            yield from numbers(value)
