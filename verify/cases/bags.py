"""Sums over embedding bags, which ATen on the CPU (torch 2.13) computes with one of two algorithms.

The dtype and the strides select the algorithm. If the rows have 16-bit or 32-bit elements and are contiguous,
ATen adds them directly: it stops at the last offset, if `include_last_offset` is set, and does not record each
item's bag. Otherwise it stops at the last index, and records the bags. The float64 reference would use the
other algorithm, so verify/cases/case.py adapts the calls with the functions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from traces.facts import tagged
from traces.overloads import bind, resolve
from traces.values import Packed, pack, unpack
from verify.cases.elements import frozen
from verify.contract.random_state import Philox

_OVERLOADS = tagged("bags")
_CUT = ("indices", "per_sample_weights")


def changed_by_strides(overload: str, packed: Packed) -> bool:
    """Return True if the stride of the per-sample weights selects ATen's direct algorithm for this call."""
    arguments = _plain(overload, packed)
    return arguments is not None and arguments["per_sample_weights"] is not None


def ends_early(overload: str, packed: Packed) -> bool:
    """Return True if the call stops at the last offset, before its last index."""
    arguments = _plain(overload, packed)
    return (
        arguments is not None and bool(arguments["include_last_offset"]) and _end(arguments) < len(arguments["indices"])
    )


def ask_cut(ask: Callable[[str, Packed, Philox], Packed], overload: str, packed: Packed, philox: Philox) -> Packed:
    """Compute the answer to the same call without the items behind the last offset.

    The returned packed call has the original indices and weights again.
    """
    arguments = unpack(packed)
    end = _end(arguments)
    cut = {name: arguments[name].narrow(0, 0, end).clone() for name in _CUT if arguments.get(name) is not None}
    answer = unpack(ask(overload, frozen(pack({**arguments, **cut})), philox))
    return frozen(pack({**answer, **{name: arguments[name] for name in cut}}))


def _plain(overload: str, packed: Packed) -> dict[str, Any] | None:
    """Return all arguments if ATen computes the call with the direct algorithm, else None."""
    if overload not in _OVERLOADS:
        return None
    a = bind(resolve(overload), (), unpack(packed))
    rows, each = a["weight"], a["per_sample_weights"]
    close = rows.stride(1) == 1 and (each is None or each.stride(0) == 1)
    return a if close and a["mode"] == 0 and a["padding_idx"] < 0 and rows.dtype != torch.float64 else None


def _end(arguments: dict[str, Any]) -> int:
    offsets = arguments["offsets"]
    return int(offsets[-1]) if len(offsets) else 0
