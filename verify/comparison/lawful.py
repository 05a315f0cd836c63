"""Building blocks for the random overloads' laws: error messages, and draws as uniform numbers."""

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

FP32 = 2.0**-18  # error of the distribution function for numbers computed in fp32
FP64 = 2.0**-40  # the same for fp64
_GRID_OF_WORDS = 2.0**-20  # error of a probability that is compared with 24-bit or 32-bit words
_LIGHT = 2.0**-10  # a value with a smaller share counts as rounding


@dataclass(frozen=True)
class Law:
    """Law for a random overload.

    Attributes:
        wrong: Function that describes a contradiction between answer, arguments and draws, or returns ''.
        sample: Function that returns the draws.
    """

    wrong: Callable[[Arguments, Results], str]
    sample: Callable[[Arguments, Results], DrawSample]


def first(values: torch.Tensor, wrong: torch.Tensor, label: str = "the first") -> str:
    """Describe the first wrong element's position and value."""
    position = int(wrong.reshape(-1).nonzero()[0])
    value = float(values.reshape(-1)[position])
    return f"; {label} is {value if math.isfinite(value) else str(value)} at flat index {position}"


def describe_wrong(values: torch.Tensor, wrong: torch.Tensor, description: str) -> str:
    """Describe how many elements are wrong, and the first one; return '' if none is."""
    if not bool(wrong.any()):
        return ""
    return f"{int(wrong.sum())} of {values.numel()} elements {description}{first(values, wrong)}"


def events(ones: torch.Tensor, p: torch.Tensor, error: float = _GRID_OF_WORDS) -> DrawSample:
    """Return events whose probability is neither 0 nor 1; `error` is the probability's possible error."""
    open_ = (p > 0) & (p < 1)
    p, hits = p[open_], ones[open_] != 0
    low, high = (p - error).clamp(0, 1), (p + error).clamp(0, 1)
    return DrawSample(hits.numpy(), low.numpy(), high.numpy())


def numbers(u: torch.Tensor, error: float) -> DrawSample:
    """Return uniform numbers, each with the possible error `error`."""
    half = torch.full_like(u, 0.5)
    bounds = (half - error, half + error, (u - error).clamp(0, 1), (u + error).clamp(0, 1))
    return DrawSample((u < 0.5).numpy(), *(b.numpy() for b in bounds))


def between(
    below: torch.Tensor, above: torch.Tensor, hits: torch.Tensor, near: torch.Tensor, p: float = 0.5
) -> DrawSample:
    """Return numbers whose distribution function lies between these bounds.

    `hits` marks numbers below the point at which the function is p, and `near` is the possible error there.
    """
    bounds = ((p - near).clamp(0, 1), (p + near).clamp(0, 1), below.clamp(0, 1), above.clamp(0, 1))
    return DrawSample(hits.numpy(), *(b.numpy() for b in bounds))


def nothing() -> DrawSample:
    """Return an empty sample, for a law without chance, or with nothing that its dtype could show."""
    return events(torch.empty(0), torch.empty(0))


def discrete(
    below: torch.Tensor,
    above: torch.Tensor,
    exact: torch.Tensor,
    arguments: Arguments,
    hits: torch.Tensor | None = None,
    p: torch.Tensor | None = None,
    error: float = FP32,
) -> DrawSample:
    """Return draws from a discrete distribution, given its distribution function just below and at each draw.

    A value with a noticeable share is spread over that share by a random number, which makes the draws uniform
    (Dunn and Smyth, Randomized quantile residuals, 1996). That number depends only on the draws and on the
    argument `philox`.

    Args:
        below: Distribution function just below each draw.
        above: Distribution function at each draw.
        exact: True if both bounds are exact, and not those of all values that may round to this one.
        arguments: The call's arguments.
        hits: Events with probability p; by default, draws in the lower half.
        p: Probability for each event.
        error: Possible error in the distribution function and in p.
    """
    lower, upper = below.clamp(0, 1).numpy(), above.clamp(0, 1).numpy()
    # calls with few draws are often equal, and must not be spread equally
    pair = repr(arguments.get("philox")).encode()
    seed = int.from_bytes(hashlib.sha256(pair + lower.tobytes() + upper.tobytes()).digest()[:8], "little")
    spread = lower + (upper - lower) * np.random.default_rng(seed).random(len(lower))
    made = min(error, FP32)
    heavy = (upper - lower > _LIGHT) & exact.numpy()
    lower, upper = (np.where(heavy, spread, bound) + side for side, bound in ((-made, lower), (made, upper)))
    if hits is None or p is None:
        hits, p = torch.from_numpy(spread < 0.5), torch.full_like(below, 0.5)
    low, high = (p - error).clamp(0, 1).numpy(), (p + error).clamp(0, 1).numpy()
    return DrawSample(hits.numpy(), low, high, np.clip(lower, 0, 1), np.clip(upper, 0, 1))


def spacing(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the spacing of a dtype's numbers at these integers, in float64; 0 if it represents all integers there."""
    if not dtype.is_floating_point:
        return torch.zeros_like(x)
    eps = torch.finfo(dtype).eps
    return torch.where(x.abs() > 2 / eps, eps * x.abs(), torch.zeros_like(x))
