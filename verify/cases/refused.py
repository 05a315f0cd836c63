"""Calls that ATen refuses: indices out of range, mismatched sizes, and dimensions that do not exist.

A kernel may do anything with such a call, except access memory outside the call's tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import torch

from traces.overloads import resolve
from verify.cases.arguments import Arguments, tensors
from verify.cases.case import Case, case_of_values
from verify.cases.extended import templates
from verify.cases.oracle import refusal

MOST = 12  # per overload
_INDICES = (torch.int64, torch.int32)
_FAR = 1 << 20  # an index beyond any small size


def refused(cases: list[Case], most: int = MOST) -> list[Case]:
    """Return up to `most` calls for one overload that ATen refuses, made from these cases.

    Each returned case records ATen's reason in `refused`.
    """
    result: dict[str, Case] = {}
    streams = [_changed(cases[0].overload, arguments) for arguments in (templates(cases) if cases else ())]
    for variants in itertools.zip_longest(*streams):
        for how, arguments in filter(None, variants):
            reason = refusal(cases[0].overload, arguments)
            if reason:
                case = case_of_values(cases[0].overload, **arguments)
                result.setdefault(case.id, replace(case, signature=f"refused: {how}", refused=reason))
        if len(result) >= most:
            break
    return list(result.values())[:most]


def _changed(overload: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield calls with one changed argument: indices, sizes and integers in turn."""
    kinds = (_out_of_range(arguments), _shorter(arguments), _dimensions(overload, arguments))
    for variants in itertools.zip_longest(*kinds):
        yield from filter(None, variants)


def _out_of_range(arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    largest = max((n for t in tensors(arguments) for n in t.shape), default=1)
    for name, value in arguments.items():
        for item, t in _items(value):
            if t.dtype in _INDICES and t.numel():
                for index in (largest, -largest - 1, _FAR, -_FAR):
                    other = t.clone()
                    other[(-1,) * t.dim()] = index
                    yield f"{index} in {name}", {**arguments, name: _with(value, item, other)}


def _shorter(arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    for name, value in arguments.items():
        for item, t in _items(value):
            for d, n in enumerate(t.shape):
                for size in dict.fromkeys((n // 2, n - 1)) if n > 1 else ():
                    other = t.narrow(d, 0, size).clone()
                    yield f"{name}.{d} = {size}", {**arguments, name: _with(value, item, other)}


def _dimensions(overload: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    rank = max((t.dim() for t in tensors(arguments)), default=0)
    largest = max((n for t in tensors(arguments) for n in t.shape), default=1)
    for argument in resolve(overload)._schema.arguments:
        value = arguments.get(argument.name)
        if type(value) is int:
            for other in (rank + 1, -rank - 2, largest + 1, _FAR):
                yield f"{argument.name} = {other}", {**arguments, argument.name: other}


def _items(value: object) -> list[tuple[int | None, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        return [(None, value)] if value.layout is torch.strided else []
    values = value if isinstance(value, list | tuple) else ()
    return [(i, t) for i, t in enumerate(values) if isinstance(t, torch.Tensor)]


def _with(value: object, item: int | None, other: torch.Tensor) -> object:
    if item is None or not isinstance(value, list | tuple):
        return other
    return type(value)(other if i == item else v for i, v in enumerate(value))
