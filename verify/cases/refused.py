"""Calls that ATen refuses: indices out of range, sizes that do not fit, dimensions that there are not.

What a kernel makes of one is its own affair, but for memory that is none of the call's.
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

MOST = 12  # of an overload
_INDICES = (torch.int64, torch.int32)
_FAR = 1 << 20  # an index beyond all that is small


def refused(cases: list[Case], most: int = MOST) -> list[Case]:
    """Up to so many calls of one overload that ATen refuses, made of these cases; each says why it does."""
    found: dict[str, Case] = {}
    streams = [_changed(cases[0].overload, arguments) for arguments in (templates(cases) if cases else ())]
    for several in itertools.zip_longest(*streams):
        for how, arguments in filter(None, several):
            why = refusal(cases[0].overload, arguments)
            if why:
                case = case_of_values(cases[0].overload, **arguments)
                found.setdefault(case.id, replace(case, signature=f"refused: {how}", refused=why))
        if len(found) >= most:
            break
    return list(found.values())[:most]


def _changed(overload: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """One argument is another: indices, then sizes, then integers."""
    kinds = (_out_of_range(arguments), _shorter(arguments), _dimensions(overload, arguments))
    for several in itertools.zip_longest(*kinds):
        yield from filter(None, several)


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
    several = value if isinstance(value, list | tuple) else ()
    return [(i, t) for i, t in enumerate(several) if isinstance(t, torch.Tensor)]


def _with(value: object, item: int | None, other: torch.Tensor) -> object:
    if item is None or not isinstance(value, list | tuple):
        return other
    return type(value)(other if i == item else v for i, v in enumerate(value))
