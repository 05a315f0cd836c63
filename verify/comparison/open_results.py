"""Handle results whose presence, form or order PyTorch's documentation leaves open.

An answer is converted to ATen's form before the comparison. The documentation of `unique` says about `sorted`:
"Whether to sort the unique elements in ascending order before returning as output", and returns indices and
counts only on request (https://docs.pytorch.org/docs/stable/generated/torch.unique.html). ATen's operator returns
all three, on some devices without elements. The mask of `native_dropout` for an empty input is bool on GPUs and
has the input's dtype on the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from traces.facts import tagged
from traces.overloads import bind, resolve
from traces.values import Packed, numel, pack, unpack
from verify.cases.case import Expected
from verify.cases.packed import contents

_INVERSE, _COUNTS = 1, 2  # offsets among the results
_UNIQUE = tagged("unique")
_UNORDERED = tagged("unsorted_unique")


def as_aten_gives(overload: str, expected: Expected, got: Packed) -> Packed:
    """Return the answer with results in ATen's form if they may differ from it; return all others unchanged."""
    base, first = overload.removeprefix("aten::").partition(".")[0], len(expected.before.tensors)
    if base not in _UNIQUE | {"native_dropout"} or len(got.tensors) != len(expected.native.tensors):
        return got
    if base == "native_dropout":
        mask = first + 1
        same = got.tensors[mask].shape == expected.native.tensors[mask].shape and not numel(got.tensors[mask])
        native = contents(expected.native, mask)
        return _with(got, {mask: native}) if same and got.tensors[mask].dtype == "bool" else got
    arguments = bind(resolve(overload), (), unpack(expected.before))
    if base in _UNORDERED and not arguments["sorted"]:
        got = _with(got, _reordered(expected, got, first))
    requested = {_INVERSE: arguments["return_inverse"], _COUNTS: arguments.get("return_counts")}
    unrequested = [first + i for i, wanted in requested.items() if not wanted and first + i < len(got.tensors)]
    return _with(got, {i: contents(expected.native, i) for i in unrequested if not numel(got.tensors[i])})


def _reordered(expected: Expected, got: Packed, first: int) -> Mapping[int, torch.Tensor]:
    """Permute distinct elements, with their inverse indices and counts, into ATen's order."""
    values, native = contents(got, first), contents(expected.native, first)
    if values.shape != native.shape:
        return {}
    ours, atens = values.sort(stable=True), native.sort(stable=True).indices
    ranks = torch.empty_like(atens).scatter_(0, ours.indices, atens)
    results = {first: torch.empty_like(values).scatter_(0, atens, ours.values)}
    inverse = contents(got, first + _INVERSE)
    if inverse.numel() and bool(((inverse >= 0) & (inverse < len(ranks))).all()):
        results[first + _INVERSE] = ranks[inverse]
    if first + _COUNTS < len(got.tensors) and numel(got.tensors[first + _COUNTS]) == len(ranks):
        results[first + _COUNTS] = torch.zeros_like(ranks).scatter_(0, ranks, contents(got, first + _COUNTS))
    return results


def _with(got: Packed, results: Mapping[int, torch.Tensor]) -> Packed:
    """Return the answer with new contents for some tensors, each in its own memory."""
    tensors, groups, data = list(got.tensors), list(got.groups), list(got.data)
    for i, result in results.items():
        other = pack({"of": result.contiguous()})
        tensors[i] = replace(other.tensors[0], group=len(groups))
        groups += other.groups
        data += [None if d is None else bytes(d) for d in other.data]
    return replace(got, tensors=tensors, groups=groups, data=data)
