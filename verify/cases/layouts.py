"""Other memory layouts for a call's arguments, with unchanged sizes and values; see `verify.cases.extended`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from traces.lazy_bits import seen_bits
from traces.overloads import resolve, written
from traces.subgraphs import is_subgraph
from verify.cases.arguments import Arguments, tensors
from verify.operators import elementwise, factors


def layouts(overload: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with other memory layouts.

    These are: index tensors with one element less; each vector with gaps and expanded; each layout for all tensors at
    once; a transposed layout for each tensor; and the conjugate and negative bits that the operator handles.
    """
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor) and value.dtype in (torch.int32, torch.int64):
            for dim in [d for d in range(value.dim()) if value.shape[d] > 1]:
                yield (
                    f"{name} without its last in dimension {dim}",
                    {**arguments, name: value.narrow(dim, 0, value.shape[dim] - 1)},
                )
    yield from of_vectors(arguments)
    yield from _of_bits(overload, arguments)
    names = [name for name, value in arguments.items() if isinstance(value, torch.Tensor) and value.dim() > 1]
    for name in names if len(names) > 1 else []:
        yield f"transposed {name}", {**arguments, name: _transposed(arguments[name])}
    for how, change in _LAYOUTS.items():
        changed = each(arguments, change)
        if changed is not None:
            yield f"{how} arguments", changed
    for dim in range(1, max((t.dim() for t in tensors(arguments)), default=0)):
        changed = each(arguments, partial(_expanded, dim=dim))
        if changed is not None:
            yield f"arguments expanded in dimension {dim}", changed


def in_one_memory(overload: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield calls f(x, x), those with overlapping views, and lists that repeat one tensor.

    If the operator writes an argument, only elementwise ones have a defined answer: they read an element before they
    write it. Views that overlap in part, and written lists, then have none. The results of a forward function are no
    other tensors, and a matrix beside itself leaves residuals of rounding errors alone.
    """
    writes = not is_subgraph(overload) and bool(written(resolve(overload)))
    by_element = elementwise(overload)
    if not by_element and (writes or factors(overload) or overload.partition(".")[0].endswith("_backward")):
        return
    named = [(n, v) for n, v in arguments.items() if isinstance(v, torch.Tensor) and v.numel() and v.is_contiguous()]
    pairs = [
        (first, x, second, y)
        for (first, x), (second, y) in itertools.combinations(named, 2)
        if x.shape == y.shape and x.dtype is y.dtype and (by_element or not _is_integral(x))
    ]
    for first, x, second, _ in pairs:
        yield f"{second} is {first}", {**arguments, second: x}
    for first, x, second, y in [pair for pair in pairs if pair[1].numel() > 1][:1] if not writes else ():
        both = torch.cat([x.reshape(-1), y.reshape(-1)[-1:]])
        views = {first: both[:-1].view(x.shape), second: both[1:].view(x.shape)}
        yield f"{second} overlaps {first}", {**arguments, **views}
    for name, value in arguments.items() if not writes else ():
        if isinstance(value, list | tuple) and len(value) > 1 and all(isinstance(v, torch.Tensor) for v in value):
            yield f"{name} of one tensor", {**arguments, name: type(value)([value[0]] * len(value))}


def _is_integral(t: torch.Tensor) -> bool:
    return not (t.is_floating_point() or t.is_complex())


def of_vectors(arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with each vector, such as a bias, strided or expanded, if there are other tensors."""
    has_other_tensors = len(tensors(arguments)) > 1
    for name, value in arguments.items() if has_other_tensors else ():
        if isinstance(value, torch.Tensor) and value.layout is torch.strided and value.dim() == 1:
            for how, changed in (("strided", _strided(value)), ("expanded", _expanded(value))):
                if changed is not None:
                    yield f"{how} {name}", {**arguments, name: changed}


def _of_bits(overload: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with tensors that store the conjugates or negatives of their values.

    Each tensor is changed alone, and then all at once, if the dispatcher leaves these bits to the operator.
    """
    if is_subgraph(overload):
        return
    changes = {"conj": ("conjugated", _conjugated), "neg": ("negated", _negated)}
    for how, change in (changes[bit] for bit in sorted(seen_bits(resolve(overload)) & changes.keys())):
        views = {name: change(v) for name, v in arguments.items() if isinstance(v, torch.Tensor)}
        changed = {name: v for name, v in views.items() if v is not None}
        for name in changed if len(changed) > 1 else ():
            yield f"{how} {name}", {**arguments, name: changed[name]}
        if changed:
            yield f"{how} arguments", {**arguments, **changed}


def _conjugated(t: torch.Tensor) -> torch.Tensor | None:
    return t.conj() if t.is_complex() and t.layout is torch.strided else None


def _negated(t: torch.Tensor) -> torch.Tensor | None:
    takes_it = (t.is_floating_point() or t.is_complex()) and t.layout is torch.strided
    return torch._neg_view(t) if takes_it else None


def each(arguments: Arguments, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Arguments | None:
    """Return the arguments with each dense tensor changed; None if `change` returns None for all of them."""
    seen = 0

    def changed(value: Any) -> Any:
        nonlocal seen
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            new = change(value)
            seen += new is not None
            return value if new is None else new
        if isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value):
            return type(value)(changed(v) for v in value)
        return value

    result = {name: changed(value) for name, value in arguments.items()}
    return result if seen else None


def _transposed(t: torch.Tensor) -> torch.Tensor | None:
    return t.mT.contiguous().mT if t.dim() > 1 and t.numel() else None


def _strided(t: torch.Tensor) -> torch.Tensor | None:
    """Return a tensor that takes every second element along the last dimension of a larger tensor."""
    if not t.dim() or not t.numel():
        return None
    wide = torch.repeat_interleave(t, 2, dim=-1)
    return wide[..., ::2]


def _offset(t: torch.Tensor) -> torch.Tensor | None:
    """Return the same values at an offset of three elements into their storage."""
    if not t.numel():
        return None
    whole = torch.cat([t.new_zeros(3), t.reshape(-1)])
    return whole[3:].view(t.shape)


def _expanded(t: torch.Tensor, dim: int = 0) -> torch.Tensor | None:
    """Return the first index along a dimension, expanded with stride 0."""
    return t.narrow(dim, 0, 1).expand(t.shape) if t.dim() > dim and t.shape[dim] > 1 else None


def _channels_last(t: torch.Tensor) -> torch.Tensor | None:
    return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else None


_LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "transposed": _transposed,
    "strided": _strided,
    "offset": _offset,
    "expanded": _expanded,
    "channels-last": _channels_last,
}
