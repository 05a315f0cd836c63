"""Laws for random integers: uniform, geometric, Poisson, categories and permutations.

Sources: the distribution functions in Johnson, Kemp and Kotz, Univariate Discrete Distributions, 2005, chapters 4
to 6 (Poisson's through the incomplete gamma function: DLMF 8.4.10). Successive draws become independent uniform
numbers through their conditional distribution functions (Rosenblatt, Remarks on a multivariate transformation,
1952). A permutation does so through its digits (Lehmer, Teaching combinatorial tricks to a computer, 1960; Knuth,
The Art of Computer Programming 2, 3.3.2 P).
"""

from __future__ import annotations

import math

import numpy as np
import torch

from verify.cases.special_functions import regularized_gamma
from verify.comparison.draws import Array, DrawSample
from verify.comparison.lawful import (
    FP32,
    FP64,
    Arguments,
    Law,
    Results,
    describe_wrong,
    discrete,
    first,
    nothing,
    spacing,
)

_LEFT = 2.0**-40  # fraction of draws that may exceed a dtype's largest number
_FIRST = 1 << 17  # elements of a permutation whose digits are tested
_BLOCK = 512  # elements processed at once
_CHOICES = 1 << 24  # limit on weights times draws, without replacement
_LOWEST = torch.iinfo(torch.int64).min

# -- uniform ----------------------------------------------------------------------------------------------------------


def _limits(arguments: Arguments, dtype: torch.dtype) -> tuple[int, int]:
    """Return the first integer that is drawn, and the end of the range (exclusive).

    For `random` without arguments, the last integer is the largest one up to which the dtype represents all
    integers.
    """
    low, high = arguments.get("from", arguments.get("low", 0)), arguments.get("to", arguments.get("high"))
    if high is None:
        if dtype.is_floating_point:
            last = int(2 / torch.finfo(dtype).eps)
        else:
            last = 1 if dtype is torch.bool else torch.iinfo(dtype).max
        high = last + 1
    return int(low), int(high)


def _uniform_wrong(arguments: Arguments, results: Results) -> str:
    out = results[0]
    low, high = _limits(arguments, out.dtype)
    if out.dtype.is_floating_point:
        wrong = ~((out.double() >= low) & (out.double() < high) & (out == out.floor()))
    else:
        wrong = (out.long() < low) | (out.long() > high - 1)
    return describe_wrong(out, wrong, f"are no integers of [{low}, {high})")


def _uniform_sample(arguments: Arguments, results: Results) -> DrawSample:
    """Return the draws; numbers that a floating dtype cannot hold round either way, and the last may be missing."""
    out = results[0].reshape(-1)
    low, high = _limits(arguments, out.dtype)
    count, x = float(high - low), out.double()
    if count <= 1:
        return nothing()
    step = spacing(x, out.dtype)
    end = float(spacing(torch.tensor(float(high), dtype=torch.float64), out.dtype)) / count
    below, above = (x - step - low) / count - FP64, (x + step + 1 - low) * (1 + end) / count + FP64
    middle = low + (high - low) // 2
    p = torch.full_like(x, float(middle - low) / count)
    near = float(spacing(torch.tensor(float(middle), dtype=torch.float64), out.dtype)) / count + end + FP64
    hits = x < middle if out.dtype.is_floating_point else out.long() < middle
    return discrete(below, above, (step == 0) & (end == 0), arguments, hits, p, near)


# -- geometric --------------------------------------------------------------------------------------------------------


def _holds_all(arguments: Arguments, dtype: torch.dtype) -> bool:
    """Return True if practically no number of trials exceeds the dtype's range."""
    largest = torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max
    return largest * math.log1p(-float(arguments["p"])) < math.log(_LEFT)


def _geometric_wrong(arguments: Arguments, results: Results) -> str:
    """Check that results are numbers of trials up to the first success, at least 1."""
    out = results[0]
    if not _holds_all(arguments, out.dtype):
        return ""
    return describe_wrong(
        out, ~((out >= 1) & (out.double() == out.double().floor()) & out.isfinite()), "are no numbers of trials"
    )


def _geometric_sample(arguments: Arguments, results: Results) -> DrawSample:
    out, p = results[0].reshape(-1), float(arguments["p"])
    if not _holds_all(arguments, out.dtype):
        return nothing()
    x = out.double()
    step = spacing(x, out.dtype)

    def cdf(x: torch.Tensor) -> torch.Tensor:
        return -torch.expm1(x.clamp(min=0) * math.log1p(-p))

    middle = torch.tensor(max(1.0, round(-math.log(2) / math.log1p(-p))), dtype=torch.float64)
    near = float(spacing(middle, out.dtype)) * p + FP32
    share = cdf(middle).expand(x.shape)
    return discrete(cdf(x - 1 - step), cdf(x + step), step == 0, arguments, x <= middle, share, near)


# -- Poisson ----------------------------------------------------------------------------------------------------------


def _poisson_wrong(arguments: Arguments, results: Results) -> str:
    out, rate = results[0], arguments["self"]
    flawed = describe_wrong(out, ~((out >= 0) & (out == out.floor()) & out.isfinite()), "are no numbers of events")
    return flawed or describe_wrong(out, (rate == 0) & (out != 0), "are events of rate 0")


def _poisson_sample(arguments: Arguments, results: Results) -> DrawSample:
    rate = arguments["self"].double().reshape(-1)
    open_ = rate > 0
    rate, x = rate[open_], results[0].reshape(-1)[open_].double()
    step = spacing(torch.maximum(x, rate), results[0].dtype)

    def cdf(k: torch.Tensor) -> torch.Tensor:
        upper_tail = regularized_gamma(k.clamp(min=0) + 1, rate, upper=True)
        return torch.where(k < 0, torch.zeros_like(k), upper_tail)

    middle = rate.floor()
    near = float((spacing(middle, results[0].dtype) * 0.4 / rate.sqrt()).max()) + FP32 if len(rate) else FP32
    return discrete(cdf(x - 1 - step), cdf(x + step), step == 0, arguments, x <= middle, cdf(middle), near)


# -- categories -------------------------------------------------------------------------------------------------------


def _rows(arguments: Arguments, results: Results) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each row's weights in float64, and the categories drawn from it."""
    weights, drawn = arguments["self"].double(), results[0]
    return weights.reshape(-1, weights.shape[-1]), drawn.reshape(-1, drawn.shape[-1])


def _multinomial_wrong(arguments: Arguments, results: Results) -> str:
    weights, drawn = _rows(arguments, results)
    categories = weights.shape[1]
    wrong = (drawn < 0) | (drawn >= categories)
    flawed = describe_wrong(drawn, wrong, f"are no categories of {categories}")
    if flawed:
        return flawed
    flawed = describe_wrong(drawn, weights.gather(1, drawn) <= 0, "are categories of weight 0")
    if flawed or arguments["replacement"]:
        return flawed
    ordered = drawn.sort(1).values
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(1)
    return (
        f"{int(twice.sum())} of {len(drawn)} rows hold a category twice{first(drawn[:, 0], twice)}"
        if twice.any()
        else ""
    )


def _multinomial_sample(arguments: Arguments, results: Results) -> DrawSample:
    """Return the draws with categories sorted by weight, which reveals ignored weights.

    Without replacement, the remaining categories are used in drawing order.
    """
    weights, drawn = _rows(arguments, results)
    if not drawn.numel():
        return nothing()
    made = FP64 if arguments["self"].dtype == torch.float64 else FP32
    weights, order = weights.sort(dim=1, stable=True)
    drawn = order.argsort(1).gather(1, drawn)
    if not arguments["replacement"] and drawn.shape[1] > 1:
        return _one_after_the_other(weights, drawn, arguments)
    shares = weights / weights.sum(1, keepdim=True)
    sums = shares.cumsum(1)
    above = sums.gather(1, drawn)
    below = above - shares.gather(1, drawn)
    middle = (sums - 0.5).abs().argmin(1, keepdim=True)
    hits, p = drawn <= middle, sums.gather(1, middle).expand(drawn.shape)
    open_ = p < 1 - FP64
    exact = torch.ones_like(below[open_], dtype=torch.bool)
    return discrete(below[open_], above[open_], exact, arguments, hits[open_], p[open_], made)


def _one_after_the_other(weights: torch.Tensor, drawn: torch.Tensor, arguments: Arguments) -> DrawSample:
    """Return each row's first draws, drawn without replacement; `weights` is overwritten."""
    most = max(1, _CHOICES // weights.numel())
    below, above = [], []
    for k in range(min(drawn.shape[1], most, int((weights > 0).sum(1).min()) - 1)):
        sums = weights.cumsum(1)
        category = drawn[:, k : k + 1]
        above.append(sums.gather(1, category) / sums[:, -1:])
        below.append(above[-1] - weights.gather(1, category) / sums[:, -1:])
        weights.scatter_(1, category, 0.0)
    if not below:
        return nothing()
    lower, upper = (torch.cat(b, 1).reshape(-1) for b in (below, above))
    return discrete(lower, upper, torch.ones_like(lower, dtype=torch.bool), arguments)


# -- permutations -----------------------------------------------------------------------------------------------------


def _randperm_wrong(arguments: Arguments, results: Results) -> str:
    out = results[0]
    wrong = out.double().sort().values != torch.arange(len(out), dtype=torch.float64)
    return f"the result is no permutation: {int(wrong.sum())} of {len(out)} integers are lacking" if wrong.any() else ""


def _randperm_sample(arguments: Arguments, results: Results) -> DrawSample:
    """Return for each element how many later elements are smaller, which is uniform and independent."""
    digits = torch.from_numpy(_lehmer(results[0].double().numpy().astype(np.int64)))
    n = len(results[0])
    remaining = n - torch.arange(len(digits), dtype=torch.float64)  # number of possible values
    digits, remaining = digits[remaining > 1].double(), remaining[remaining > 1]
    half = (remaining / 2).ceil()
    exact = torch.ones_like(remaining, dtype=torch.bool)
    return discrete(
        digits / remaining, (digits + 1) / remaining, exact, arguments, digits < half, half / remaining, FP64
    )


def _lehmer(permutation: Array) -> Array:
    """Return Lehmer's digits for the first elements: each element minus how many smaller ones precede it."""
    head = permutation[:_FIRST]
    ranks = np.empty(len(head), dtype=np.int64)
    ranks[np.argsort(head)] = np.arange(len(head))
    marks = np.zeros(len(head) + 1, dtype=np.int64)  # 1 after the rank of each earlier element
    digits = np.empty(len(head), dtype=np.int64)
    for start in range(0, len(head), _BLOCK):
        block = ranks[start : start + _BLOCK]
        before = np.cumsum(marks)[block] + np.tril(block[None, :] < block[:, None], -1).sum(1)
        digits[start : start + _BLOCK] = head[start : start + _BLOCK] - before
        marks[block + 1] = 1
    return digits


UNIFORM_INTEGERS = Law(_uniform_wrong, _uniform_sample)
GEOMETRIC = Law(_geometric_wrong, _geometric_sample)
POISSON = Law(_poisson_wrong, _poisson_sample)
MULTINOMIAL = Law(_multinomial_wrong, _multinomial_sample)
RANDPERM = Law(_randperm_wrong, _randperm_sample)
