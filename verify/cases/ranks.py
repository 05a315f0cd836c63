"""Rank tolerances that an overload derives from its matrix dtype if the call does not pass one.

The reference runs in float64, in which a float32 matrix would get a smaller tolerance and possibly another
rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from traces.values import Packed, pack, unpack
from verify.cases.elements import frozen
from verify.contract.random_state import Philox

_TAKEN_BY = {  # the argument, which is a tensor or a number
    "aten::linalg_pinv.atol_rtol_tensor": "rtol",
    "aten::linalg_pinv.atol_rtol_tensor_out": "rtol",
    "aten::linalg_lstsq": "rcond",
    "aten::linalg_lstsq.out": "rcond",
}


def depends(overload: str, packed: Packed) -> bool:
    """Return True if the call leaves its tolerance to the dtype."""
    return overload in _TAKEN_BY and packed.tree[_TAKEN_BY[overload]] is None


def ask_for(
    ask: Callable[[str, Packed, Philox], Packed], step: float, overload: str, packed: Packed, philox: Philox
) -> Packed:
    """Ask for the same call with an explicit tolerance for a dtype whose epsilon is `step`.

    The tolerance is `step` times the larger matrix dimension, or 0 if a positive absolute tolerance is passed.
    """
    arguments, name = unpack(packed), _TAKEN_BY[overload]
    if name == "rcond":
        tolerance: object = step * max(arguments["self"].shape[-2:])
    else:
        tolerance = _relative(arguments, step)
    answer = unpack(ask(overload, frozen(pack({**arguments, name: tolerance})), philox))
    return frozen(pack({**answer, name: None}))


def _relative(arguments: Mapping[str, Any], step: float) -> torch.Tensor:
    rtol = torch.tensor(step * max(arguments["self"].shape[-2:]), dtype=torch.float64)
    if arguments["atol"] is not None:
        rtol = torch.where(arguments["atol"] > 0, 0.0, rtol)
    return rtol
