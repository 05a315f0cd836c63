"""Tolerances of a rank that an overload takes from the dtype of its matrix, where they are not given: in float64, of
which the reference is, a matrix of float32 would have another rank."""

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
    """Whether the call leaves its tolerance to the dtype."""
    return overload in _TAKEN_BY and packed.tree[_TAKEN_BY[overload]] is None


def ask_for(
    ask: Callable[[str, Packed, Philox], Packed], step: float, overload: str, packed: Packed, philox: Philox
) -> Packed:
    """What is asked of the same call with the tolerance of a dtype that has this step: that times the larger number of
    rows or columns, or 0 where a positive absolute one is given."""
    arguments, name = unpack(packed), _TAKEN_BY[overload]
    if name == "rcond":
        given: object = step * max(arguments["self"].shape[-2:])
    else:
        given = _relative(arguments, step)
    answer = unpack(ask(overload, frozen(pack({**arguments, name: given})), philox))
    return frozen(pack({**answer, name: None}))


def _relative(arguments: Mapping[str, Any], step: float) -> torch.Tensor:
    rtol = torch.tensor(step * max(arguments["self"].shape[-2:]), dtype=torch.float64)
    if arguments["atol"] is not None:
        rtol = torch.where(arguments["atol"] > 0, 0.0, rtol)
    return rtol
