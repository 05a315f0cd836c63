"""Call a bare wrapper, which may follow PyTorch's function signature instead of the operator's schema.

`torch.nn.functional.embedding(input, weight)` is `aten::embedding(weight, indices)`, and a `reduction` that is
"mean" for the function is 1 for the operator. The first of these calls that fits the wrapper's signature is
made:

- 1. By name, if each parameter without a default is an argument in the schema, perhaps under a synonym.
- 2. Like PyTorch's Python function with the same name: parameters without a default by position, and values
  that differ from their default by name; or all of these by position.
- 3. In the schema's order, dropping trailing arguments that have their default values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import torch

from traces.overloads import base_name, resolve

Arguments = tuple[list[Any], dict[str, Any]]  # positional arguments, keyword arguments

# Arguments that are numbers in schemas and words in Python functions.
_WORDS = {
    "reduction": ("none", "mean", "sum"),
    "interpolation_mode": ("bilinear", "nearest", "bicubic"),
    "padding_mode": ("zeros", "border", "reflection"),
}
# Schema arguments that a parameter with another name may stand for.
_SYNONYMS = {
    **dict.fromkeys(("input", "self", "x", "inp", "tensor", "input_tensor"), ("self", "input", "indices")),
    "training": ("train",),
    "mode": ("interpolation_mode",),
    "size": ("output_size",),
}
# Hints that do not affect the result.
_HINTS = frozenset({"cudnn_enabled", "cudnn_enable", "benchmark", "deterministic"})


def call(overload: str, wrapper: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call the wrapper with the overload's arguments.

    Args:
        overload: Full name of the overload.
        wrapper: The wrapper to call.
        values: All arguments by their names in the schema.

    Raises:
        TypeError: No call fits. The first candidate is then made anyway, so that its error explains the
            mismatch.
    """
    signature = inspect.signature(wrapper)
    calls = list(_calls(overload, signature, values))
    args, kwargs = next((c for c in calls if _fits(signature, c)), calls[0])
    return wrapper(*args, **kwargs)


def _calls(overload: str, signature: inspect.Signature, values: Mapping[str, Any]) -> Iterator[Arguments]:
    arguments = resolve(overload)._schema.arguments
    function = _function(base_name(resolve(overload)))
    named = _by_name(arguments, signature, values, function is not None)
    if named is not None:
        yield [], named
    if function is not None:
        yield from _like_function(arguments, function, values)
    yield from _like_schema(arguments, values)


def _by_name(
    arguments: list[Any], signature: inspect.Signature, values: Mapping[str, Any], words: bool
) -> dict[str, Any] | None:
    """Return each value under its parameter's name, or None if a parameter without a default matches no argument.

    A value is omitted if it is None, or if it is the schema's default and the parameter's default is None. A
    value without a parameter keeps its schema name, so that the call does not fit, unless it may be omitted. If
    `words` is True, a parameter without a default receives "mean" instead of a number.
    """
    places = _places(arguments, signature)
    if places is None:
        return None
    named = {}
    for argument in arguments:
        value, parameter = values[argument.name], places.get(argument.name)
        if parameter is None:
            if not _omissible(argument, value):
                named[argument.name] = value
        elif parameter.default is parameter.empty:
            named[parameter.name] = _worded(argument, value) if words else value
        elif value is not None and not (parameter.default is None and _has_default(argument, value)):
            named[parameter.name] = _worded(argument, value) if isinstance(parameter.default, str) else value
    return named


def _places(arguments: list[Any], signature: inspect.Signature) -> dict[str, inspect.Parameter] | None:
    """Return the parameter for each argument that has one, by the argument's name."""
    parameters = signature.parameters.values()
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        return None
    names = [a.name for a in arguments]
    by_argument = {p.name: p for p in parameters if p.name in names}
    for parameter in (p for p in parameters if p.name not in names):
        meant = next((n for n in _SYNONYMS.get(parameter.name, ()) if n in names and n not in by_argument), None)
        if meant is not None:
            by_argument[meant] = parameter
        elif parameter.default is parameter.empty:
            return None
    return by_argument


def _like_function(arguments: list[Any], function: inspect.Signature, values: Mapping[str, Any]) -> Iterator[Arguments]:
    named = _by_name(arguments, function, values, words=True)
    parameters = list(function.parameters.values())
    required = [p.name for p in parameters if p.default is p.empty]
    if named is None or not set(required) <= named.keys() <= function.parameters.keys():
        return
    first = [named[name] for name in required]
    optional = [p for p in parameters if p.name not in required]
    changed = {p.name: named[p.name] for p in optional if p.name in named and not _equal(named[p.name], p.default)}
    yield first, changed
    last = max((i for i, p in enumerate(optional) if p.name in changed), default=-1)
    yield first + [changed.get(p.name, p.default) for p in optional[: last + 1]], {}


def _like_schema(arguments: list[Any], values: Mapping[str, Any]) -> Iterator[Arguments]:
    positional = [a for a in arguments if not a.kwarg_only]
    keywords = {a.name: values[a.name] for a in arguments if a.kwarg_only and values[a.name] is not None}
    yield [values[a.name] for a in positional], keywords
    changed = {a.name: values[a.name] for a in arguments if a.name in keywords and not _omissible(a, values[a.name])}
    yield [values[a.name] for a in positional], changed
    while positional and _omissible(positional[-1], values[positional[-1].name]):
        positional.pop()
        yield [values[a.name] for a in positional], changed


@cache
def _function(operator: str) -> inspect.Signature | None:
    """Return the signature of the PyTorch function that calls this operator, if it is written in Python."""
    stems = (operator, operator.removesuffix("_nd"), operator.removesuffix("_loss"), operator.removesuffix("r"))
    names = [name for stem in (*stems, operator.replace("_", "")) for name in (stem, f"_{stem}")]
    for name in dict.fromkeys(names):
        function = vars(torch.nn.functional).get(name) or vars(torch).get(name)
        if inspect.isfunction(function):
            signature = inspect.signature(function)
            if all(p.kind is p.POSITIONAL_OR_KEYWORD for p in signature.parameters.values()):
                return signature
    return None


def _worded(argument: Any, value: Any) -> Any:
    words = _WORDS.get(argument.name, ())
    return words[value] if type(value) is int and 0 <= value < len(words) else value


def _omissible(argument: Any, value: Any) -> bool:
    return value is None or argument.name in _HINTS or _has_default(argument, value)


def _has_default(argument: Any, value: Any) -> bool:
    return argument.has_default_value() and _equal(value, argument.default_value)


def _equal(a: Any, b: Any) -> bool:
    """Return True if two values other than tensors are equal.

    Numbers may differ in type, except that a bool only equals a bool. Tensors are equal only if they are
    identical.
    """
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor) or isinstance(a, bool) != isinstance(b, bool):
        return a is b
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


def _fits(signature: inspect.Signature, arguments: Arguments) -> bool:
    try:
        signature.bind(*arguments[0], **arguments[1])
    except TypeError:
        return False
    return True
