"""Program dataflow: every call in order, and the call that produced each value that another call reads.

A value is a tensor's contents at one time. An in-place write creates new values for every tensor in the written
memory. So each value has one producer, either a call or the state before all calls, and any number of later readers.
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
    """Layout and storage of a value.

    Attributes:
        dtype: Name without `torch.`.
        shape: Sizes in elements.
        stride: Strides in elements.
        memory: Values with equal numbers are in one storage; None means a storage for this value alone.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    memory: int | None = None


@dataclass(frozen=True)
class FlowCall:
    """A call in a dataflow.

    Attributes:
        overload: Full overload name.
        arguments: By schema name, as a packed tree in which {"tensor": k} is value number k.
        results: Value number for each returned item, None for non-tensors. For a tensor that the call wrote, it is the
            value after the write.
        writes: Values that the written tensors hold before the call.
        phase: Phase, for display.
        module: Module name, for display.
        stored: Id of the stored call that holds the argument contents, or None.
    """

    overload: str
    arguments: Json
    results: tuple[int | None, ...]
    writes: tuple[int, ...] = ()
    phase: str = ""
    module: str = ""
    stored: int | None = None

    @property
    def reads(self) -> list[int]:
        """Return the value numbers that the call takes, in argument order."""
        return list(numbers(self.arguments))


@dataclass(frozen=True)
class Dataflow:
    """Calls in order, and the values that connect them.

    Attributes:
        values: All values, by number.
        calls: All calls, in execution order.
        kept: Values that another reader uses or that stay alive, such as outputs, parameters and gradients.
        sources: Values that no call in this dataflow produces.
    """

    values: list[ValueType]
    calls: list[FlowCall]
    kept: frozenset[int] = field(default_factory=frozenset)
    sources: frozenset[int] = field(default_factory=frozenset)

    def as_json(self) -> Json:
        """Return the JSON for a trace's dataflow.json."""
        return {
            "format": FORMAT,
            "values": [[v.dtype, list(v.shape), list(v.stride), v.memory] for v in self.values],
            "calls": [vars(call) for call in self.calls],
            "kept": sorted(self.kept),
            "sources": sorted(self.sources),
        }

    @classmethod
    def of_json(cls, fields: Json, where: str) -> Dataflow:
        """Build a Dataflow from the JSON that `as_json` wrote. Raise TraceError if it is malformed."""
        try:
            if fields["format"] != FORMAT:
                raise TraceError(f"{where} is format {str(fields['format'])[:20]}, this toolkit reads {FORMAT}")
            values = [
                ValueType(d, tuple(shape), tuple(stride), memory) for d, shape, stride, memory in fields["values"]
            ]
            calls = [
                FlowCall(**{**c, "results": tuple(c["results"]), "writes": tuple(c["writes"])}) for c in fields["calls"]
            ]
            flow = cls(values, calls, frozenset(fields["kept"]), frozenset(fields["sources"]))
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
    """Yield the value numbers in a packed tree, in order."""
    if isinstance(tree, dict):
        if tree.keys() == {"tensor"}:
            yield tree["tensor"]
            return
        tree = list(tree.values())
    if isinstance(tree, list):
        for value in tree:
            yield from numbers(value)


def without_own_device(arguments: dict[str, Any], tensors: Iterable[torch.Tensor]) -> dict[str, Any]:
    """Return the arguments with `device` set to None if all tensors are on that device.

    In that case the call moves nothing.
    """
    if arguments.get("device") is None:
        return arguments
    requested = torch.device(arguments["device"])
    devices = [t.device for t in tensors]
    is_same = devices and all(d.type == requested.type and requested.index in (None, d.index) for d in devices)
    return {**arguments, "device": None} if is_same else arguments
