"""Subgraphs of ATen calls, defined as operators: `fused::add_gelu_1f3a90c2`.

A subgraph is a list of steps between input and output tensors; each step calls one overload. Its name combines the
steps with a digest of the full definition. So equal subgraphs from any model are one operator, whatever the sizes of
their tensors; the broadcast pattern is part of the definition. Once defined, PyTorch runs the steps in order, and
everything that works for an overload (cases, verdicts, kernels, serving) works for the subgraph.
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
from traces.program import program_name
from traces.values import DTYPE_NAMES, Json, decoded

NAMESPACE = "fused"
FORMAT = 1
MAX_STEPS = 256  # in one subgraph
_FLOATS = frozenset({"bfloat16", "float16", "float32"})
_NAMED = 4  # steps that appear in the name
_library = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
_defined: dict[str, Subgraph] = {}


@dataclass(frozen=True)
class SubgraphCall:
    """One step of a subgraph.

    Attributes:
        overload: Full overload name.
        arguments: By schema name, as a packed tree (traces/values.py) in which {"tensor": k} is value k of the
            subgraph.
        results: How many values the step produces, one for each returned item.
    """

    overload: str
    arguments: Json
    results: int = 1

    @property
    def reads(self) -> list[int]:
        """Return the value numbers that the step takes, in argument order."""
        return list(numbers(self.arguments))


@dataclass(frozen=True)
class SubgraphInput:
    """An input tensor's dtype and broadcast pattern.

    Attributes:
        dtype: Name without `torch.`.
        shape: 1 for each dimension of size 1, None for any other size. This tells which inputs are broadcast, and along
            which dimensions.
    """

    dtype: str
    shape: tuple[int | None, ...]

    @classmethod
    def like(cls, dtype: str, shape: Iterable[int]) -> SubgraphInput:
        """Return the input description that fits a tensor with this dtype and shape."""
        return cls(dtype, tuple(1 if n == 1 else None for n in shape))

    def takes(self, shape: Sequence[int]) -> bool:
        """Return True if a tensor with this shape fits."""
        return self == SubgraphInput.like(self.dtype, shape)

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join('n' if n is None else str(n) for n in self.shape)}]"


@dataclass(frozen=True)
class Subgraph:
    """Steps between input and output tensors.

    Attributes:
        inputs: Values 0 to n - 1.
        steps: Calls in order; their results are numbered from n on.
        outputs: Value numbers to return, none of them an input.
    """

    inputs: tuple[SubgraphInput, ...]
    steps: tuple[SubgraphCall, ...]
    outputs: tuple[int, ...]

    @cached_property
    def overload(self) -> str:
        """Return the full name as an operator."""
        bases = [base_name(resolve(step.overload)).strip("_") for step in self.steps]
        stem = "_".join(bases[:_NAMED]) + ("_" + str(len(bases)) if len(bases) > _NAMED else "")
        text = json.dumps(self.as_json(), sort_keys=True)
        return f"{NAMESPACE}::{stem}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def schema(self) -> str:
        """Return the schema, such as `add_gelu_1f3a90c2(Tensor a0, Tensor a1) -> Tensor`."""
        arguments = ", ".join(f"Tensor a{i}" for i in range(len(self.inputs)))
        returns = "Tensor" if len(self.outputs) == 1 else f"({', '.join(['Tensor'] * len(self.outputs))})"
        return f"{self.overload.partition('::')[2]}({arguments}) -> {returns}"

    def as_json(self) -> Json:
        return {"format": FORMAT, **jsonable(self)}

    @classmethod
    def of_json(cls, value: Json, where: str) -> Subgraph:
        """Build a Subgraph from the JSON that `as_json` wrote, without running anything.

        Raise TraceError if it is malformed, and UserError if PyTorch lacks one of its operators.
        """
        try:
            if value["format"] != FORMAT:
                raise TraceError(f"{where} is format {str(value['format'])[:20]}, this toolkit reads {FORMAT}")
            steps = tuple(SubgraphCall(s["overload"], s["arguments"], s["results"]) for s in value["steps"])
            inputs = tuple(SubgraphInput(a["dtype"], tuple(a["shape"])) for a in value["inputs"])
            subgraph = cls(inputs, steps, tuple(value["outputs"]))
            subgraph._check(where)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise TraceError(f"{where}: not a subgraph ({error!r})") from error
        return subgraph

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
        """Run the steps with PyTorch and return the outputs: a tensor, or a tuple if there are several.

        Args:
            *tensors: The inputs.
            before: Called with the overload and arguments before each step.

        Raises:
            RuntimeError: If a tensor's shape does not fit its input, as operators do.
        """
        for i, (tensor, wanted) in enumerate(zip(tensors, self.inputs, strict=True)):
            if not wanted.takes(tensor.shape):
                raise RuntimeError(f"{self.overload}: a{i} has shape {tuple(tensor.shape)}, expected {wanted}, n != 1")
        values: list[Any] = list(tensors)
        for step in self.steps:
            arguments = decoded(step.arguments, values, step.overload, str(tensors[0].device))
            if before is not None:
                before(step.overload, arguments)
            result = call(resolve(step.overload), arguments)
            values += result if isinstance(result, tuple | list) else [result]
        outputs = tuple(values[k] for k in self.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def widened(self) -> Subgraph:
        """Return the same subgraph in float64, so that intermediate values are not rounded to a narrower dtype."""
        steps = tuple(SubgraphCall(s.overload, _widened(s.arguments), s.results) for s in self.steps)
        inputs = tuple(replace(a, dtype="float64" if a.dtype in _FLOATS else a.dtype) for a in self.inputs)
        return Subgraph(inputs, steps, self.outputs)

    def define(self) -> OpOverload:
        """Register the operator with PyTorch for the rest of the process, and return it."""
        if self.overload not in _defined:
            _library.define(self.schema)  # type: ignore[no-untyped-call]
            _library.impl(self.schema.partition("(")[0], self.run, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
            _defined[self.overload] = self
        return resolve(self.overload)


def is_subgraph(overload: str) -> bool:
    """Return True if this is the name of a subgraph, defined in this process or not."""
    return overload.startswith(f"{NAMESPACE}::")


def definitions(overload: str) -> list[Json]:
    """Return the JSON that another process must pass to `define_all` before it can use the overload."""
    subgraph = subgraph_of(overload)
    return [] if subgraph is None else [subgraph.as_json()]


def define_all(entries: list[Json]) -> None:
    """Define the subgraphs that `definitions` returned."""
    for definition in entries:
        Subgraph.of_json(definition, "a subgraph's definition").define()


def subgraph_of(overload: str) -> Subgraph | None:
    """Return the definition of a subgraph operator, or None for any other overload.

    Raise UserError for a subgraph that this process has not defined.
    """
    if not is_subgraph(overload):
        return None
    if overload not in _defined:
        raise UserError(f"{overload}: no such subgraph is known here; find subgraphs: {program_name()} fuse MODEL")
    return _defined[overload]


def _widened(tree: Json) -> Json:
    """Replace every bfloat16, float16 or float32 dtype argument with float64, and set `half_to_float` to False."""
    if isinstance(tree, list):
        return [_widened(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.keys() == {"dtype"} and tree["dtype"] in _FLOATS:
        return {"dtype": "float64"}
    return {name: False if name == "half_to_float" else _widened(value) for name, value in tree.items()}
