"""Arguments that another overload leaves, where they have to be of the other arguments' dtype: gradients of distances
that for p = inf ask which of the differences is the distance. In float64 it is another number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from traces.overloads import call, resolve
from traces.values import Packed, pack, unpack
from verify.cases.elements import frozen
from verify.contract.random_state import Philox

# The argument, by the overload that takes it, the overload that leaves it, and what else that is given.
_LEFT_BY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "aten::_cdist_backward": ("cdist", "aten::_cdist_forward", {"compute_mode": None}),
    "aten::_pdist_backward": ("pdist", "aten::_pdist_forward", {}),
}


def depends(overload: str, packed: Packed) -> bool:
    """Whether the call has such an argument."""
    return overload in _LEFT_BY and packed.tree["p"] == {"float": math.inf.hex()}


def ask_again(ask: Callable[[str, Packed, Philox], Packed], overload: str, packed: Packed, philox: Philox) -> Packed:
    """What is asked of the same call with the argument that is left of the others' contents."""
    name, other, more = _LEFT_BY[overload]
    arguments = unpack(packed)
    op = resolve(other)
    given = {a.name: arguments[a.name] for a in op._schema.arguments if a.name in arguments}
    with torch.no_grad():
        changed = pack({**arguments, name: call(op, {**given, **more})})
    return ask(overload, frozen(changed), philox)
