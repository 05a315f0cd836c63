"""A subgraph as text for a prompt: its steps as calls of ATen."""

from __future__ import annotations

from typing import Any

from traces.overloads import resolve
from traces.subgraphs import Subgraph, SubgraphCall
from traces.values import Json

_HEAD = """## Steps

The operator is made of these calls of ATen, in this order:
"""
_TAIL = """Do all of it in as few passes over memory as there can be: what lies between the steps and is not returned
need not be stored, and may be kept in float32 where ATen rounds it to less. What is returned has ATen's dtype, shape
and strides, and is memory of its own. Sizes and layouts may be others than those recorded: each n stands for any size
but 1."""


def steps_text(subgraph: Subgraph) -> str:
    """The steps, a line each, and what is returned."""
    count = len(subgraph.inputs)
    names = [f"a{i}" for i in range(count)]
    lines = []
    for step in subgraph.steps:
        made = [f"t{len(names) + k}" for k in range(step.results)]
        lines.append(f"    {', '.join(made)} = {_call(step, names)}")
        names += made
    lines.append(f"    return {', '.join(names[k] for k in subgraph.outputs)}")
    given = [f"    # a{i}: {told}" for i, told in enumerate(subgraph.inputs)]
    return "\n".join([_HEAD, *given, *lines, "", _TAIL])


def _call(step: SubgraphCall, names: list[str]) -> str:
    schema = resolve(step.overload)._schema
    words = []
    for argument in schema.arguments:
        value = step.arguments[argument.name]
        if not argument.kwarg_only:
            words.append(_value(value, names))
        elif value is not None:
            words.append(f"{argument.name}={_value(value, names)}")
    return f"{step.overload.replace('::', '.')}({', '.join(words)})"


def _value(value: Json, names: list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(v, names) for v in value)}]"
    if not isinstance(value, dict):
        return repr(value)
    tag, content = next(iter(value.items()))
    told: dict[str, Any] = {
        "tensor": lambda: names[content],
        "float": lambda: repr(float.fromhex(content)),
        "dtype": lambda: f"torch.{content}",
        "tuple": lambda: f"({', '.join(_value(v, names) for v in content)})",
    }
    return str(told[tag]()) if tag in told else repr(content)
