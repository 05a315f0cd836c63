"""What the laws of random overloads are made of: an answer that contradicts itself or not, and draws as numbers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from verify.comparison.draws import DrawSample

Arguments: TypeAlias = Mapping[str, Any]
Results: TypeAlias = Sequence[torch.Tensor]

FP32 = 2.0**-18  # by which the distribution function may be off of numbers that were made in fp32
FP64 = 2.0**-40  # in fp64
_GRID_OF_WORDS = 2.0**-20  # by which a probability may be off, as it is compared with words of 24 or 32 bits
_LIGHT = 2.0**-10  # a value of a smaller share counts as a rounding


@dataclass(frozen=True)
class Law:
    """wrong: what contradicts the arguments and the draws, in a line; empty if nothing. sample: the draws."""

    wrong: Callable[[Arguments, Results], str]
    sample: Callable[[Arguments, Results], DrawSample]


def first(values: torch.Tensor, wrong: torch.Tensor, what: str = "the first") -> str:
    """Which of the wrong elements comes first, and what it is."""
    place = int(wrong.reshape(-1).nonzero()[0])
    value = float(values.reshape(-1)[place])
    return f"; {what} is {value if math.isfinite(value) else str(value)} at flat index {place}"


def told(values: torch.Tensor, wrong: torch.Tensor, what: str) -> str:
    """How many elements are wrong, and the first; empty if none is."""
    if not bool(wrong.any()):
        return ""
    return f"{int(wrong.sum())} of {values.numel()} elements {what}{first(values, wrong)}"


def events(ones: torch.Tensor, p: torch.Tensor, off: float = _GRID_OF_WORDS) -> DrawSample:
    """Events, where the probability leaves something to chance. off: by which it may be off."""
    open_ = (p > 0) & (p < 1)
    p, hits = p[open_], ones[open_] != 0
    low, high = (p - off).clamp(0, 1), (p + off).clamp(0, 1)
    return DrawSample(hits.numpy(), low.numpy(), high.numpy())


def numbers(u: torch.Tensor, off: float) -> DrawSample:
    """Uniform numbers, each of which may be off by so much."""
    half = torch.full_like(u, 0.5)
    bounds = (half - off, half + off, (u - off).clamp(0, 1), (u + off).clamp(0, 1))
    return DrawSample((u < 0.5).numpy(), *(b.numpy() for b in bounds))


def between(
    below: torch.Tensor, above: torch.Tensor, hits: torch.Tensor, near: torch.Tensor, p: float = 0.5
) -> DrawSample:
    """Numbers whose distribution function lies between these bounds. hits: those below the number where it is p, give
    or take `near`."""
    bounds = ((p - near).clamp(0, 1), (p + near).clamp(0, 1), below.clamp(0, 1), above.clamp(0, 1))
    return DrawSample(hits.numpy(), *(b.numpy() for b in bounds))


def nothing() -> DrawSample:
    """Of a law that leaves nothing to chance, or nothing that its dtype could show."""
    return events(torch.empty(0), torch.empty(0))


def discrete(
    below: torch.Tensor,
    above: torch.Tensor,
    exact: torch.Tensor,
    arguments: Arguments,
    hits: torch.Tensor | None = None,
    p: torch.Tensor | None = None,
    off: float = FP32,
) -> DrawSample:
    """Draws that have values of their own shares: the distribution function below each, and with it.

    A value of a share that tells is spread over it by a number that depends on the draws and, of the arguments, on the
    pair `philox` alone, which makes the draws uniform numbers (Dunn and Smyth, Randomized quantile residuals, 1996).
    exact: where both bounds are the very ones, and not those of all values that may have been rounded to this. hits:
    events of probability p; by default those that lie in the lower half. off: by which the distribution function and p
    may be off.
    """
    lower, upper = below.clamp(0, 1).numpy(), above.clamp(0, 1).numpy()
    pair = repr(arguments.get("philox")).encode()  # calls of few draws are often alike, and not to be spread alike
    seed = int.from_bytes(hashlib.sha256(pair + lower.tobytes() + upper.tobytes()).digest()[:8], "little")
    spread = lower + (upper - lower) * np.random.default_rng(seed).random(len(lower))
    made = min(off, FP32)
    heavy = (upper - lower > _LIGHT) & exact.numpy()
    lower, upper = (np.where(heavy, spread, bound) + side for side, bound in ((-made, lower), (made, upper)))
    if hits is None or p is None:
        hits, p = torch.from_numpy(spread < 0.5), torch.full_like(below, 0.5)
    low, high = (p - off).clamp(0, 1).numpy(), (p + off).clamp(0, 1).numpy()
    return DrawSample(hits.numpy(), low, high, np.clip(lower, 0, 1), np.clip(upper, 0, 1))


def spacing(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """How far apart the numbers of a dtype lie at these integers, in float64; 0 where it holds every one of them."""
    if not dtype.is_floating_point:
        return torch.zeros_like(x)
    eps = torch.finfo(dtype).eps
    return torch.where(x.abs() > 2 / eps, eps * x.abs(), torch.zeros_like(x))
