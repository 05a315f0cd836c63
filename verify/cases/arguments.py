"""The arguments of a call that cases are made of: their tensors, and whether these are small enough to be judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from verify.operators import linear

MAX_ELEMENTS = 140_000  # of one argument or result of a call whose work grows as they do
MAX_OTHERS = 10_000  # of any other operator, unless they are in a few lines
MAX_FEW_LINES = 4  # of more elements
LAST = -1  # in the place of a dimension: the last element of all

Arguments: TypeAlias = dict[str, Any]


def fits(overload: str, shape: Sequence[int]) -> bool:
    """Whether Triton's interpreter gets through a tensor of this shape in seconds."""
    size = math.prod(shape)
    few_lines = size <= MAX_FEW_LINES * max(shape, default=1)
    return size <= MAX_OTHERS or (size <= MAX_ELEMENTS and (linear(overload) or few_lines))


def tensors(arguments: Arguments) -> list[torch.Tensor]:
    """All of a call, in lists too."""
    found = []
    for value in arguments.values():
        found += [v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, torch.Tensor)]
    return found
