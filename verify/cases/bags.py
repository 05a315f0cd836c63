"""Sums of bags of embeddings, which ATen on the CPU (torch 2.13) computes in two ways, by dtype and strides: where rows
of 16 or 32 bits that lie close are added up plainly, it ends at the last offset, if that is given, and records no bags
of items; else it ends at the last index, and records them. The reference in float64 would be of the other way."""

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
    """Whether a stride of the weights of a call's items has it computed in the one way."""
    found = _plain(overload, packed)
    return found is not None and found["per_sample_weights"] is not None


def ends_early(overload: str, packed: Packed) -> bool:
    """Whether a call ends at the last offset, before its last index."""
    found = _plain(overload, packed)
    return found is not None and bool(found["include_last_offset"]) and _end(found) < len(found["indices"])


def ask_cut(ask: Callable[[str, Packed, Philox], Packed], overload: str, packed: Packed, philox: Philox) -> Packed:
    """What is asked of the same call without what lies behind the last offset."""
    given = unpack(packed)
    end = _end(given)
    cut = {name: given[name].narrow(0, 0, end).clone() for name in _CUT if given.get(name) is not None}
    answer = unpack(ask(overload, frozen(pack({**given, **cut})), philox))
    return frozen(pack({**answer, **{name: given[name] for name in cut}}))


def _plain(overload: str, packed: Packed) -> dict[str, Any] | None:
    """All arguments of a call that is computed in the one way."""
    if overload not in _OVERLOADS:
        return None
    a = bind(resolve(overload), (), unpack(packed))
    rows, each = a["weight"], a["per_sample_weights"]
    close = rows.stride(1) == 1 and (each is None or each.stride(0) == 1)
    return a if close and a["mode"] == 0 and a["padding_idx"] < 0 and rows.dtype != torch.float64 else None


def _end(arguments: dict[str, Any]) -> int:
    offsets = arguments["offsets"]
    return int(offsets[-1]) if len(offsets) else 0
