"""The dataflow of a program: every call in order, and which call made the values that another reads.

A value is what a tensor held at one time: a write in place makes new values of all that lies in the memory written. So
each value is made once, by one call or by what comes before all of them, and may be read by any number of later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from traces.errors import TraceError
from traces.values import DTYPE_NAMES, Json

FORMAT = 1


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

    def as_json(self) -> Json:
        """What dataflow.json of a trace holds."""
        return {
            "format": FORMAT,
            "values": [[v.dtype, list(v.shape), list(v.stride), v.memory] for v in self.values],
            "calls": [vars(call) for call in self.calls],
            "kept": sorted(self.kept),
            "sources": sorted(self.sources),
        }

    @classmethod
    def of_json(cls, found: Json, where: str) -> Dataflow:
        """What `as_json` made. Raises TraceError naming `where` if it is not that."""
        try:
            if found["format"] != FORMAT:
                raise TraceError(f"{where} is format {str(found['format'])[:20]}, this toolkit reads {FORMAT}")
            values = [ValueType(d, tuple(shape), tuple(stride), memory) for d, shape, stride, memory in found["values"]]
            calls = [
                FlowCall(**{**c, "results": tuple(c["results"]), "writes": tuple(c["writes"])}) for c in found["calls"]
            ]
            flow = cls(values, calls, frozenset(found["kept"]), frozenset(found["sources"]))
            flow._check(where)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise TraceError(f"{where}: not a dataflow ({error!r})") from error
        return flow

    def _check(self, where: str) -> None:
        for i, value in enumerate(self.values):
            sizes = (*value.shape, *value.stride, *([] if value.memory is None else [value.memory]))
            if value.dtype not in DTYPE_NAMES.values() or not all(isinstance(n, int) for n in sizes):
                raise TraceError(f"{where}: values[{i}] is not dtype, shape, stride and memory")
        for i, call in enumerate(self.calls):
            named = [*call.reads, *call.writes, *(n for n in call.results if n is not None)]
            if not all(isinstance(n, int) and 0 <= n < len(self.values) for n in named):
                raise TraceError(f"{where}: calls[{i}] names a value that is not there")
            if not isinstance(call.overload, str) or not isinstance(call.stored, int | None):
                raise TraceError(f"{where}: calls[{i}] is not a call")
        if not all(isinstance(n, int) and 0 <= n < len(self.values) for n in self.kept | self.sources):
            raise TraceError(f"{where}: kept or sources names a value that is not there")


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


def without_own_device(arguments: dict[str, Any], tensors: Iterable[torch.Tensor]) -> dict[str, Any]:
    """The arguments of a call but for a device that is the one of all its tensors: then nothing is moved."""
    if arguments.get("device") is None:
        return arguments
    told = torch.device(arguments["device"])
    held = [t.device for t in tensors]
    here = held and all(d.type == told.type and told.index in (None, d.index) for d in held)
    return {**arguments, "device": None} if here else arguments
