"""How an operator is judged: by ATen's own tags first, then by exceptions, whose reasons are in traces/facts.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from traces.facts import tagged
from traces.overloads import kind, resolve
from traces.subgraphs import is_subgraph, subgraph_of
from verify.contract.derive import functional_base

_EXACT = tagged("exact")
_POINTWISE = tagged("pointwise")
LAXER = tagged("laxer")
_COPIES = tagged("copies")
_CONVERTING = tagged("converting")
_ANY_ZERO = tagged("any_zero")
_VANISHING_TERMS = tagged("vanishing_terms")
_EXPONENTIAL = tagged("exponential")
_POLES = tagged("poles")
_CENTRED = tagged("centred")
_ELIMINATED = tagged("eliminated")
_SUMS = tagged("sums")
_GENTLE = tagged("gentle")
_PRODUCTS = tagged("products")


@cache
def parts(overload: str) -> tuple[str, ...]:
    """Of a subgraph the overloads of the steps that compute; of any other operator itself."""
    subgraph = subgraph_of(overload)
    steps = [overload] if subgraph is None else [step.overload for step in subgraph.steps]
    return tuple(o for o in steps if subgraph is None or kind(o) != "view")


def group(overload: str) -> str:
    """The row of the table for an overload: operators that are neither copies nor pointwise accumulate. A subgraph has
    the row of the step that rounds; of several, each rounds what it is given by the one before."""
    if is_subgraph(overload):
        rounding = [g for g in map(group, parts(overload)) if g != "exact"]
        return "accumulate" if len(rounding) > 1 else rounding[0] if rounding else "exact"
    stem = _stem(overload)
    if stem in _EXACT:
        return "exact"
    return "pointwise" if stem not in LAXER and (stem in _POINTWISE or _tagged(overload)) else "accumulate"


@cache
def _tagged(overload: str) -> bool:
    """Whether ATen calls it pointwise, or the functional form of a list's or of one that writes."""
    return any(torch.Tag.pointwise in resolve(o).tags for o in (overload, functional_base(overload)))


def _base_name(overload: str) -> str:
    return overload.removeprefix("aten::").split(".")[0]


def _stem(overload: str) -> str:
    stem = _base_name(overload).strip("_").removeprefix("foreach_").strip("_")
    return stem.removesuffix("_backward").removesuffix("_like")


def judged_as(overload: str, tree: Mapping[str, Any]) -> str:
    """The overload whose row of the table a call falls under, by its packed arguments: its own, but adding sparse rows
    that may be there several times is adding them up."""
    other = tree.get("other")
    sparse = other.get("sparse_coo") if isinstance(other, dict) else None
    return "aten::index_add" if sparse and not sparse["coalesced"] and _stem(overload) in ("add", "sub") else overload


def adds_up(overload: str) -> bool:
    """Whether results are sums of terms of either sign, so that they may be far smaller than these. So are those of a
    subgraph in which nothing else makes more of an error than there was."""
    stems = set(map(_stem, parts(overload)))
    return bool(stems & _SUMS) and stems <= _SUMS | (_GENTLE if is_subgraph(overload) else set())


def multiplies(overload: str) -> bool:
    """Whether results are sums of products, which tensor cores make of parts of the arguments."""
    return any(_stem(part) in _PRODUCTS for part in parts(overload))


def elementwise(overload: str) -> bool:
    """Whether each element of the result comes of one element of each argument, as the table or ATen itself says."""
    return group(overload) == "pointwise" or (not is_subgraph(overload) and _tagged(overload))


def linear(overload: str) -> bool:
    """Whether the work for each element is the same however many there are: element by element, or to draw it."""
    return elementwise(overload) or kind(resolve(overload)) == "random"


def takes_infinities(overload: str) -> bool:
    """Whether what it answers for infinities and NaN does not depend on the algorithm."""
    return all(_stem(part) not in _CENTRED | _ELIMINATED for part in parts(overload))


def copies(overload: str) -> bool:
    """Whether elements of the result are elements of an argument, to the bit, or constants."""
    return _stem(overload) in _COPIES


def converts(overload: str) -> bool:
    """Whether elements of the result are elements of an argument in another dtype."""
    return _stem(overload) in _CONVERTING


def signs_zeros(overload: str) -> bool:
    """Whether it is laid down which sign a zero of the result has: of operators element by element and choices."""
    if group(overload) == "accumulate" or is_subgraph(overload) or _base_name(overload) in _VANISHING_TERMS:
        return False
    return _stem(overload) not in _ANY_ZERO


def depends_on_steps(overload: str, arguments: int) -> bool:
    """Whether results of a pointwise operator move with the order of its steps, as they do where terms cancel.

    arguments: how many of them are floating tensors; of one alone the table says it.
    """
    return arguments > 1 or _stem(overload) in _EXPONENTIAL | _POLES


def goes_on_with_results(overload: str) -> bool:
    """Whether it computes further with what it has written, rounded to the dtype of that."""
    return _stem(overload).startswith("fused_")


def conditioned(overload: str) -> bool:
    """Whether small errors may grow in between: of operators that are neither copies nor element by element."""
    return group(overload) == "accumulate" and not elementwise(overload)
