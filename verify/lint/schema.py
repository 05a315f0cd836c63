"""Operator schemas in a kernel file's docstring, parsed as text without torch."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

# Keyword-only, in addition to the schema's arguments: the key and counter from which a random kernel draws.
PHILOX = "philox"
_SCHEMA = re.compile(r"^(?P<name>\w+::\w+(\.\w+)?)\((?P<parameters>.*)\)\s*->\s*(?P<returns>.+)$")
_PARAMETER = re.compile(r"^(?P<type>\S.*?)\s+(?P<name>\w+)(\s*=.*)?$", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """One argument in a schema. `kind` is 'tensor', 'tensors' (a list) or 'value'."""

    name: str
    kind: str
    keyword_only: bool


@dataclass(frozen=True)
class Schema:
    """A parsed schema such as `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`."""

    overload: str
    parameters: tuple[Parameter, ...]


def stated_schemas(docstring: str) -> dict[str, Schema]:
    """Return the schemas in a docstring's first lines, up to the first blank line, by overload name."""
    head = docstring.strip().split("\n\n", 1)[0]
    head = re.sub(r"[^\S\n]+", " ", head)  # long runs of spaces would make the next patterns slow
    text = re.sub(r"\s*\n\s+", " ", head)  # a schema may continue on several indented lines
    parsed = [parse_schema(line.strip()) for line in text.split("\n")]
    return {s.overload: s for s in parsed if s is not None}


def parse_schema(text: str) -> Schema | None:
    """Parse a schema. Return None if `text` is not one."""
    match = _SCHEMA.match(text)
    if match is None:
        return None
    parameters: list[Parameter] = []
    keyword_only = False
    for part in _split(match["parameters"]):
        if part == "*":
            keyword_only = True
            continue
        parameter = _PARAMETER.match(part)
        if parameter is None:
            return None
        parameters.append(Parameter(parameter["name"], _kind(parameter["type"]), keyword_only))
    return Schema(match["name"], tuple(parameters))


def _split(parameters: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, c in enumerate(parameters):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(parameters[start:i].strip())
            start = i + 1
    return [p for p in [*parts, parameters[start:].strip()] if p]


def _kind(type_text: str) -> str:
    bare = re.sub(r"\([^()]*\)", "", type_text)  # Tensor(a!)[] -> Tensor[]
    if not bare.startswith("Tensor"):
        return "value"
    return "tensors" if "[" in bare else "tensor"


def bind(schema: Schema, wrapper: ast.FunctionDef) -> dict[str, str] | str:
    """Return the kind that each wrapper parameter receives when called for `schema`, or the reason why the call fails.

    The call passes every argument: positional ones in order, keyword-only ones by name.
    """
    arguments = wrapper.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    by_name = {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
    passed = [p for p in schema.parameters if not p.keyword_only]
    if len(passed) > len(positional):
        return f"takes {len(positional)} positional arguments, {schema.overload} passes {len(passed)}"
    bound = {name: p.kind for name, p in zip(positional, passed, strict=False)}
    for p in schema.parameters:
        if p.keyword_only and p.name not in by_name:
            return f"has no parameter {p.name!r}, which {schema.overload} passes by name"
        if p.keyword_only and p.name in bound:
            return f"gets {p.name!r} of {schema.overload} twice, by position and by name"
        if p.keyword_only:
            bound[p.name] = p.kind
    missing = [name for name in _required(wrapper) if name not in bound]
    return f"requires {missing[0]!r}, which {schema.overload} does not pass" if missing else bound


def _required(wrapper: ast.FunctionDef) -> list[str]:
    a = wrapper.args
    positional = [*a.posonlyargs, *a.args]
    without_default = positional[: len(positional) - len(a.defaults)]
    keyword_only = zip(a.kwonlyargs, a.kw_defaults, strict=True)
    keyword = [k for k, default in keyword_only if default is None and k.arg != PHILOX]
    return [x.arg for x in (*without_default, *keyword)]
