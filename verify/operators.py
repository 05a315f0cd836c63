"""Classify operators for judging, by ATen's tags first and then by exceptions.

The exceptions and their reasons are in traces/facts.yaml.
"""

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
_ANY_ZERO = tagged("any_zero") | tagged("cancelling")
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
    """Return the overloads for a subgraph's computing steps, or the overload itself if it is no subgraph."""
    subgraph = subgraph_of(overload)
    steps = [overload] if subgraph is None else [step.overload for step in subgraph.steps]
    return tuple(o for o in steps if subgraph is None or kind(o) != "view")


def group(overload: str) -> str:
    """Return the tolerance table row for an overload: `exact`, `pointwise` or `accumulate`.

    An operator that neither copies nor works elementwise accumulates. A subgraph with a single rounding step has
    the row of that step. If several steps round, the row is `accumulate`, because each step rounds the rounded
    result of the previous one.
    """
    if is_subgraph(overload):
        rounding = [g for g in map(group, parts(overload)) if g != "exact"]
        return "accumulate" if len(rounding) > 1 else rounding[0] if rounding else "exact"
    stem = _stem(overload)
    if stem in _EXACT:
        return "exact"
    return "pointwise" if stem not in LAXER and (stem in _POINTWISE or _tagged(overload)) else "accumulate"


@cache
def _tagged(overload: str) -> bool:
    """Return True if ATen tags the overload, or the functional form that it derives from, as pointwise."""
    return any(torch.Tag.pointwise in resolve(o).tags for o in (overload, functional_base(overload)))


def _base_name(overload: str) -> str:
    return overload.removeprefix("aten::").split(".")[0]


def _stem(overload: str) -> str:
    stem = _base_name(overload).strip("_").removeprefix("foreach_").strip("_")
    return stem.removesuffix("_backward").removesuffix("_like")


def judged_as(overload: str, tree: Mapping[str, Any]) -> str:
    """Return the overload whose table row applies to a call.

    It is the call's own overload with one exception. Adding or subtracting an uncoalesced sparse tensor sums
    repeated rows, so it is judged as `aten::index_add`.

    Args:
        overload: Overload name.
        tree: Packed arguments.
    """
    other = tree.get("other")
    sparse = other.get("sparse_coo") if isinstance(other, dict) else None
    return "aten::index_add" if sparse and not sparse["coalesced"] and _stem(overload) in ("add", "sub") else overload


def adds_up(overload: str) -> bool:
    """Return True if results are sums with terms of either sign, so that cancellation may make them small.

    A subgraph counts if all its other steps do not amplify errors.
    """
    stems = set(map(_stem, parts(overload)))
    return bool(stems & _SUMS) and stems <= _SUMS | (_GENTLE if is_subgraph(overload) else set())


def multiplies(overload: str) -> bool:
    """Return True if results are sums of products, for which tensor cores round the arguments."""
    return any(_stem(part) in _PRODUCTS for part in parts(overload))


def elementwise(overload: str) -> bool:
    """Return True if each result element depends on one element of each argument.

    The source is the table, or ATen's own tag.
    """
    return group(overload) == "pointwise" or (not is_subgraph(overload) and _tagged(overload))


def linear(overload: str) -> bool:
    """Return True if the work for each element does not depend on their number: elementwise and random operators."""
    return elementwise(overload) or kind(resolve(overload)) == "random"


def takes_infinities(overload: str) -> bool:
    """Return True if the results for infinities and NaN do not depend on the algorithm."""
    return all(_stem(part) not in _CENTRED | _ELIMINATED for part in parts(overload))


def factors(overload: str) -> bool:
    """Return True if the operator factors matrices, which is much work for each element."""
    return any(_stem(part) in _ELIMINATED and _stem(part).startswith("linalg_") for part in parts(overload))


def copies(overload: str) -> bool:
    """Return True if result elements are bitwise copies of argument elements, or constants."""
    return _stem(overload) in _COPIES


def converts(overload: str) -> bool:
    """Return True if result elements are argument elements in another dtype."""
    return _stem(overload) in _CONVERTING


def signs_zeros(overload: str) -> bool:
    """Return True if the sign of a zero result is specified, as for elementwise operators and selections."""
    if group(overload) == "accumulate" or is_subgraph(overload) or _base_name(overload) in _VANISHING_TERMS:
        return False
    return _stem(overload) not in _ANY_ZERO


def depends_on_steps(overload: str, arguments: int) -> bool:
    """Return True if results of a pointwise operator change with the order of its steps, because terms cancel.

    Args:
        overload: Overload name.
        arguments: How many floating-point tensor arguments it has. If there is only one, the table decides.
    """
    return arguments > 1 or _stem(overload) in _EXPONENTIAL | _POLES


def goes_on_with_results(overload: str) -> bool:
    """Return True if the operator computes further with a result that it has already rounded to its dtype."""
    return _stem(overload).startswith("fused_")


def conditioned(overload: str) -> bool:
    """Return True if small intermediate errors may grow: operators that are neither copies nor elementwise."""
    return group(overload) == "accumulate" and not elementwise(overload)
