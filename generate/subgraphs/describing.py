"""Describe a subgraph in a prompt: its steps as ATen calls."""

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
    """Return the steps, one line each, and the results."""
    count = len(subgraph.inputs)
    names = [f"a{i}" for i in range(count)]
    lines = []
    for step in subgraph.steps:
        results = [f"t{len(names) + k}" for k in range(step.results)]
        lines.append(f"    {', '.join(results)} = {_call(step, names)}")
        names += results
    lines.append(f"    return {', '.join(names[k] for k in subgraph.outputs)}")
    input_lines = [f"    # a{i}: {description}" for i, description in enumerate(subgraph.inputs)]
    return "\n".join([_HEAD, *input_lines, *lines, "", _TAIL])


def _call(step: SubgraphCall, names: list[str]) -> str:
    """Return a step as a call in source text."""
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
    """Return an argument as source text."""
    if isinstance(value, list):
        return f"[{', '.join(_value(v, names) for v in value)}]"
    if not isinstance(value, dict):
        return repr(value)
    tag, content = next(iter(value.items()))
    writers: dict[str, Any] = {
        "tensor": lambda: names[content],
        "float": lambda: repr(float.fromhex(content)),
        "dtype": lambda: f"torch.{content}",
        "tuple": lambda: f"({', '.join(_value(v, names) for v in content)})",
    }
    return str(writers[tag]()) if tag in writers else repr(content)
