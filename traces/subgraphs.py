"""Subgraphs of ATen calls as operators of their own: `fused::add_gelu_1f3a90c2`.

A subgraph is a list of steps, each a call of an overload, between the tensors that come in and those that go out. It is
named after its steps and a digest of all that it does, so equal subgraphs of any model are one operator, whatever the
sizes of their tensors; how these are broadcast is part of it. Defined, PyTorch knows the operator: it runs the steps
one after the other, and all that is done with an overload (cases, verdicts, kernels, serving) is done with a subgraph,
too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch._ops import OpOverload

from traces.dataflow import numbers
from traces.errors import TraceError, UserError
from traces.format import jsonable
from traces.overloads import base_name, call, resolve
from traces.values import DTYPE_NAMES, Json, decoded

NAMESPACE = "fused"
FORMAT = 1
MAX_STEPS = 256  # of one subgraph
_FLOATS = frozenset({"bfloat16", "float16", "float32"})
_NAMED = 4  # steps that a name tells
_library = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
_defined: dict[str, Subgraph] = {}


@dataclass(frozen=True)
class SubgraphCall:
    """A call. arguments: by schema name, as a packed tree (traces/values.py), in which {"tensor": k} is value k of the
    subgraph. results: how many values it makes, one for each thing that it returns."""

    overload: str
    arguments: Json
    results: int = 1

    @property
    def reads(self) -> list[int]:
        """The numbers of the values that it takes, in their order."""
        return list(numbers(self.arguments))


@dataclass(frozen=True)
class SubgraphInput:
    """A tensor that comes in. shape: of each dimension 1, or None for any other size. So it is known which inputs are
    broadcast, and along what."""

    dtype: str
    shape: tuple[int | None, ...]

    @classmethod
    def like(cls, dtype: str, shape: Iterable[int]) -> SubgraphInput:
        """That which a tensor of this shape is an example of."""
        return cls(dtype, tuple(1 if n == 1 else None for n in shape))

    def takes(self, shape: Sequence[int]) -> bool:
        """Whether a tensor of this shape is one."""
        return self == SubgraphInput.like(self.dtype, shape)

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join('n' if n is None else str(n) for n in self.shape)}]"


@dataclass(frozen=True)
class Subgraph:
    """Steps between tensors. inputs: these are values 0 to n - 1, and the results of the steps are numbered on from
    there. outputs: numbers of values, none of them an input."""

    inputs: tuple[SubgraphInput, ...]
    steps: tuple[SubgraphCall, ...]
    outputs: tuple[int, ...]

    @cached_property
    def overload(self) -> str:
        """Its full name as an operator."""
        bases = [base_name(resolve(step.overload)).strip("_") for step in self.steps]
        told = "_".join(bases[:_NAMED]) + ("_" + str(len(bases)) if len(bases) > _NAMED else "")
        text = json.dumps(self.as_json(), sort_keys=True)
        return f"{NAMESPACE}::{told}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def schema(self) -> str:
        """Such as `add_gelu_1f3a90c2(Tensor a0, Tensor a1) -> Tensor`."""
        arguments = ", ".join(f"Tensor a{i}" for i in range(len(self.inputs)))
        returns = "Tensor" if len(self.outputs) == 1 else f"({', '.join(['Tensor'] * len(self.outputs))})"
        return f"{self.overload.partition('::')[2]}({arguments}) -> {returns}"

    def as_json(self) -> Json:
        return {"format": FORMAT, **jsonable(self)}

    @classmethod
    def of_json(cls, value: Json, where: str) -> Subgraph:
        """What `as_json` made. Raises TraceError naming `where` if it is not that, UserError for an operator that
        PyTorch lacks; nothing is run."""
        try:
            if value["format"] != FORMAT:
                raise TraceError(f"{where} is format {str(value['format'])[:20]}, this toolkit reads {FORMAT}")
            steps = tuple(SubgraphCall(s["overload"], s["arguments"], s["results"]) for s in value["steps"])
            inputs = tuple(SubgraphInput(a["dtype"], tuple(a["shape"])) for a in value["inputs"])
            made = cls(inputs, steps, tuple(value["outputs"]))
            made._check(where)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise TraceError(f"{where}: not a subgraph ({error!r})") from error
        return made

    def _check(self, where: str) -> None:
        if not 0 < len(self.steps) <= MAX_STEPS:
            raise TraceError(f"{where}: {len(self.steps)} steps, expected 1 to {MAX_STEPS}")
        known = len(self.inputs)
        if unknown := sorted({a.dtype for a in self.inputs} - set(DTYPE_NAMES.values())):
            raise TraceError(f"{where}: unknown dtype {unknown[0]!r}")
        if any(n not in (1, None) for a in self.inputs for n in a.shape):
            raise TraceError(f"{where}: a size of an input is neither 1 nor null")
        for i, step in enumerate(self.steps):
            resolve(step.overload)
            if not all(isinstance(k, int) and 0 <= k < known for k in step.reads):
                raise TraceError(f"{where}: steps[{i}] reads a value that is not there yet")
            known += step.results
        if not self.outputs or not all(isinstance(k, int) and len(self.inputs) <= k < known for k in self.outputs):
            raise TraceError(f"{where}: outputs are {str(self.outputs)[:80]}, expected numbers of results")

    def run(self, *tensors: torch.Tensor, before: Callable[[str, dict[str, Any]], None] | None = None) -> Any:
        """The outputs, made by PyTorch step by step: a tensor, or a tuple where there are several.

        before: is told the overload and the arguments of each step that is to be taken. Raises RuntimeError, as
        operators do, for tensors of other shapes than it takes.
        """
        for i, (tensor, wanted) in enumerate(zip(tensors, self.inputs, strict=True)):
            if not wanted.takes(tensor.shape):
                raise RuntimeError(f"{self.overload}: a{i} has shape {tuple(tensor.shape)}, expected {wanted}, n != 1")
        values: list[Any] = list(tensors)
        for step in self.steps:
            arguments = decoded(step.arguments, values, step.overload, str(tensors[0].device))
            if before is not None:
                before(step.overload, arguments)
            made = call(resolve(step.overload), arguments)
            values += made if isinstance(made, tuple | list) else [made]
        found = tuple(values[k] for k in self.outputs)
        return found[0] if len(found) == 1 else found

    def widened(self) -> Subgraph:
        """The same of float64, in which nothing that lies between is rounded to less."""
        steps = tuple(SubgraphCall(s.overload, _widened(s.arguments), s.results) for s in self.steps)
        inputs = tuple(replace(a, dtype="float64" if a.dtype in _FLOATS else a.dtype) for a in self.inputs)
        return Subgraph(inputs, steps, self.outputs)

    def define(self) -> OpOverload:
        """The operator, which PyTorch knows from now on, for the length of the process."""
        if self.overload not in _defined:
            _library.define(self.schema)  # type: ignore[no-untyped-call]
            _library.impl(self.schema.partition("(")[0], self.run, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
            _defined[self.overload] = self
        return resolve(self.overload)


def is_subgraph(overload: str) -> bool:
    """Whether this is the name of a subgraph, known here or not."""
    return overload.startswith(f"{NAMESPACE}::")


def definitions(overload: str) -> list[Json]:
    """What another process has to be told, with `define_all`, before it knows the overload."""
    subgraph = subgraph_of(overload)
    return [] if subgraph is None else [subgraph.as_json()]


def define_all(found: list[Json]) -> None:
    """Define what `definitions` gave."""
    for definition in found:
        Subgraph.of_json(definition, "a subgraph's definition").define()


def subgraph_of(overload: str) -> Subgraph | None:
    """What an operator was defined as in this process; None for one that is no subgraph. Raises UserError for a
    subgraph that was not."""
    if not is_subgraph(overload):
        return None
    if overload not in _defined:
        raise UserError(f"{overload}: no such subgraph is known here; find subgraphs: enable fuse MODEL")
    return _defined[overload]


def _widened(tree: Json) -> Json:
    """Arguments that name no floating dtype but float64."""
    if isinstance(tree, list):
        return [_widened(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.keys() == {"dtype"} and tree["dtype"] in _FLOATS:
        return {"dtype": "float64"}
    return {name: False if name == "half_to_float" else _widened(value) for name, value in tree.items()}
