"""Tensors among a call's arguments, and the size limits for judging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from verify.operators import linear

MAX_ELEMENTS = (1 << 19) + 4  # limit for one argument or result if the work of the operator is linear in it
MAX_OTHERS = 10_000  # limit for other operators, unless the elements form only a few lines
MAX_FEW_LINES = 4  # a tensor with up to this many lines may exceed MAX_OTHERS
LAST = -1  # used instead of a dimension: the whole tensor's last element

Arguments: TypeAlias = dict[str, Any]


def fits(overload: str, shape: Sequence[int]) -> bool:
    """Return True if Triton's interpreter processes a tensor of this shape within seconds."""
    size = math.prod(shape)
    few_lines = size <= MAX_FEW_LINES * max(shape, default=1)
    return size <= MAX_OTHERS or (size <= MAX_ELEMENTS and (linear(overload) or few_lines))


def tensors(arguments: Arguments) -> list[torch.Tensor]:
    """Return all tensors in a call, including those in lists."""
    result = []
    for value in arguments.values():
        result += [v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, torch.Tensor)]
    return result
