"""Handle elements to which several values are written, if PyTorch's documentation leaves open which one remains.

`scatter`: "When indices are not unique, the behavior is non-deterministic (one of the values from src will be
picked arbitrarily)". `index_copy`: "The result is nondeterministic since it depends on which copy occurs last".
`index_put`, `put`: "the behavior is undefined if indices contain duplicate elements" without accumulate.
`max_unpool2d` and `3d`: "may behave nondeterministically when the input indices has repeat values".
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html, .index_copy_, .index_put_, .put_,
torch.nn.MaxUnpool2d.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from traces.overloads import base_name, bind, resolve
from traces.subgraphs import is_subgraph
from traces.values import unpack
from verify.cases.case import Expected
from verify.cases.packed import tensor_names

Arguments = dict[str, Any]
Written = tuple[torch.Tensor, torch.Tensor]
"""Values to write, and their flat positions in the result, in the same shape."""


def _scattered(a: Arguments, places: torch.Tensor) -> Written:
    index = a["index"].long()
    if not places.dim():
        return a["src"].reshape(-1), places.expand(index.numel())
    src, inside = (t.reshape(1) if not t.dim() else t for t in (a["src"], index))
    src = src[tuple(slice(n) for n in inside.shape)]
    lines = places[tuple(slice(n if d != a["dim"] % places.dim() else None) for d, n in enumerate(inside.shape))]
    return src, lines.gather(a["dim"], inside)


def _copied(a: Arguments, places: torch.Tensor) -> Written:
    return a["source"].reshape(-1), places.index_select(a["dim"], a["index"].long().reshape(-1)).reshape(-1)


def _put_at_indices(a: Arguments, places: torch.Tensor) -> Written:
    positions = places[tuple(slice(None) if i is None else i for i in a["indices"])]
    return a["values"].expand(positions.shape), positions


def _put(a: Arguments, places: torch.Tensor) -> Written:
    return a["source"].reshape(-1), places.take(a["index"].long()).reshape(-1)


def _unpooled(a: Arguments, places: torch.Tensor) -> Written:
    first = -len(a["output_size"])
    positions = a["indices"].long().flatten(first)
    return a["self"].flatten(first), places.flatten(first).gather(-1, positions)


_WRITES: dict[str, Callable[[Arguments, torch.Tensor], Written]] = {
    "scatter": _scattered,
    "index_copy": _copied,
    "index_put": _put_at_indices,
    "_index_put_impl": _put_at_indices,
    "_unsafe_index_put": _put_at_indices,
    "put": _put,
    "max_unpool2d": _unpooled,
    "max_unpool3d": _unpooled,
}


def leaves_open(expected: Expected) -> bool:
    """Return True if several values are written to one element, so that it is open which one remains."""
    writes = _written(expected)
    return writes is not None and len(set(writes[1].reshape(-1).tolist())) < writes[1].numel()


def one_of_those_written(expected: Expected, index: int, got: torch.Tensor) -> torch.Tensor | None:
    """Return a mask for elements that hold a value written to them.

    Return None if tensor `index` is not written by such an operator.
    """
    writes = _written(expected)
    if writes is None or index not in _results(expected):
        return None
    values, at = (t.reshape(-1) for t in writes)
    have, values = got.reshape(-1)[at], values.to(got.dtype)
    if got.dtype.is_floating_point and got.dtype.itemsize == 1:
        have, values = have.float(), values.float()  # few operators support 8-bit floats
    same = (have == values) | ((have != have) & (values != values))
    return torch.zeros(got.numel(), dtype=torch.bool).index_fill_(0, at[same], True).view(got.shape)


def _results(expected: Expected) -> set[int]:
    names = tensor_names(expected.native.tree)
    in_place = resolve(expected.overload)._schema.is_mutable
    return {i for i, name in enumerate(names) if name == "return" or (in_place and name in ("self", "out"))}


def _written(expected: Expected) -> Written | None:
    base = _base(expected.overload)
    if base not in _WRITES:
        return None
    arguments = bind(resolve(expected.overload), (), unpack(expected.before))
    if arguments.get("accumulate") or "reduce" in arguments or base == "scatter" and "src" not in arguments:
        return None
    shape = expected.native.tensors[max(_results(expected))].shape
    positions = torch.arange(math.prod(shape)).view(shape)
    return _WRITES[base](arguments, positions) if positions.numel() else None


@cache
def _base(overload: str) -> str:
    return "" if is_subgraph(overload) else base_name(resolve(overload)).removesuffix("_")
