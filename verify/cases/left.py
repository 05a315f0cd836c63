"""Recompute arguments that another overload produced and that must match the dtype of the other arguments.

With p = inf, the gradients of distances compare each difference with the stored distance to find which one is
the distance. After widening to float64 the stored distance would no longer equal any difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from traces.overloads import call, resolve
from traces.values import Packed, pack, unpack
from verify.cases.elements import frozen
from verify.contract.random_state import Philox

# Maps an overload to the argument, the overload that produces it, and that overload's additional arguments.
_LEFT_BY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "aten::_cdist_backward": ("cdist", "aten::_cdist_forward", {"compute_mode": None}),
    "aten::_pdist_backward": ("pdist", "aten::_pdist_forward", {}),
}


def depends(overload: str, packed: Packed) -> bool:
    """Return True if the call has such an argument."""
    return overload in _LEFT_BY and packed.tree["p"] == {"float": math.inf.hex()}


def ask_again(ask: Callable[[str, Packed, Philox], Packed], overload: str, packed: Packed, philox: Philox) -> Packed:
    """Ask for the same call, with the argument recomputed from the other arguments."""
    name, other, more = _LEFT_BY[overload]
    arguments = unpack(packed)
    op = resolve(other)
    forward_arguments = {a.name: arguments[a.name] for a in op._schema.arguments if a.name in arguments}
    with torch.no_grad():
        changed = pack({**arguments, name: call(op, {**forward_arguments, **more})})
    return ask(overload, frozen(changed), philox)
