"""Laws for exponential, log-normal and Cauchy numbers, based on their distribution functions.

Sources: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.6.7 (exponential), 1.3.6.6.9 (log-normal),
1.3.6.6.3 (Cauchy). The part of a number that its dtype cannot represent is not checked. If the median or mean is
far larger than the scale, nothing can be checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import torch

from verify.comparison.draws import DrawSample
from verify.comparison.lawful import FP32, FP64, Arguments, Law, Results, between, describe_wrong, nothing

Function: TypeAlias = Callable[[torch.Tensor], torch.Tensor]

_RARE = 2.0**-34  # values with a smaller probability are not drawn from a number of 32-bit words


def _examined(out: torch.Tensor, cdf: Function, median: float, error: Function) -> DrawSample:
    """Return the draws for a distribution function.

    `error` gives the error that numbers may have in addition to one step of their dtype.
    """
    info = torch.finfo(out.dtype)
    x = out.reshape(-1).double()
    made = FP64 if info.bits == 64 else FP32

    def around(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        step = info.eps * x.abs() + info.smallest_normal * info.eps + error(x)
        lower = torch.where(x == math.inf, torch.full_like(x, info.max), x - step)
        upper = torch.where(x == -math.inf, torch.full_like(x, info.min), x + step)
        return cdf(lower), cdf(upper)

    below, above = around(x)
    at = torch.tensor(median, dtype=torch.float64)
    least, most = around(at)
    near = torch.maximum(0.5 - least, most - 0.5) + made
    return between(below - made, above + made, x < median, near.expand(x.shape))


# -- exponential ------------------------------------------------------------------------------------------------------


def _exponential_wrong(arguments: Arguments, results: Results) -> str:
    """Check that results are positive, as in PyTorch; 0 and infinity are allowed if the draw does not fit the dtype."""
    out, rate = results[0], float(arguments["lambd"])
    info = torch.finfo(out.dtype)
    zero = rate * info.smallest_normal * info.eps / 2 > _RARE
    infinite = math.exp(-rate * info.max) > _RARE
    wrong = ~(out > 0) & ~((out == 0) & zero) | ((out == math.inf) & (not infinite))
    return describe_wrong(out, wrong, "are not positive and finite")


def _exponential_sample(arguments: Arguments, results: Results) -> DrawSample:
    rate = float(arguments["lambd"])

    def cdf(x: torch.Tensor) -> torch.Tensor:
        return -torch.expm1(-rate * x.clamp(min=0))

    return _examined(results[0], cdf, math.log(2) / rate, torch.zeros_like)


# -- log-normal -------------------------------------------------------------------------------------------------------


def _of_logarithms(arguments: Arguments) -> tuple[float, float]:
    return float(arguments["mean"]), float(arguments["std"])


def _log_normal_wrong(arguments: Arguments, results: Results) -> str:
    """Check that results are positive; 0 and infinity are allowed if 16 deviations exceed the dtype's range."""
    out, (mean, std) = results[0], _of_logarithms(arguments)
    info = torch.finfo(out.dtype)
    zero = mean - 16 * std < math.log(info.smallest_normal * info.eps)
    infinite = mean + 16 * std > math.log(info.max)
    wrong = ~(out > 0) & ~((out == 0) & zero) | ((out == math.inf) & (not infinite))
    return describe_wrong(out, wrong, "are not positive and finite")


def _log_normal_sample(arguments: Arguments, results: Results) -> DrawSample:
    """Return the draws; moments are those of the logarithms, if 10 deviations stay in the dtype's range."""
    out, (mean, std) = results[0].reshape(-1), _of_logarithms(arguments)
    info = torch.finfo(out.dtype)
    computed = torch.finfo(torch.promote_types(out.dtype, torch.float32)).eps
    if info.eps + computed * abs(mean) > std / 16 or abs(mean) > math.log(info.max):
        return nothing()

    def logarithm(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(min=0).log()

    def off(x: torch.Tensor) -> torch.Tensor:
        return (2 * computed * x * (1 + x.log().abs())).nan_to_num(0.0)

    def cdf(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.special.ndtr((logarithm(x) - mean) / std)
        return result

    sample = _examined(out, cdf, math.exp(mean), off)
    if not math.log(info.smallest_normal) < mean - 10 * std < mean + 10 * std < math.log(info.max):
        return sample
    z = (logarithm(out.double()) - mean) / std
    rounding = (info.eps + 2 * computed * (1 + abs(mean) + std * z.abs())) / std
    return replace(sample, normal=z.numpy(), rounding=rounding.numpy())


# -- Cauchy -----------------------------------------------------------------------------------------------------------


def _cauchy_wrong(arguments: Arguments, results: Results) -> str:
    """Check that results are finite, unless the dtype's largest number is within reach."""
    out, scale = results[0], float(arguments["sigma"])
    reach = torch.finfo(out.dtype).max - abs(float(arguments["median"]))
    infinite = reach <= 0 or math.atan(scale / reach) / math.pi > _RARE
    return describe_wrong(out, out.isnan() | (out.isinf() & (not infinite)), "are not finite")


def _cauchy_sample(arguments: Arguments, results: Results) -> DrawSample:
    median, scale = float(arguments["median"]), float(arguments["sigma"])
    info = torch.finfo(results[0].dtype)
    if abs(median) * info.eps > scale / 16 or abs(median) + scale > info.max or scale < info.smallest_normal:
        return nothing()

    def cdf(x: torch.Tensor) -> torch.Tensor:
        return 0.5 + torch.atan((x - median) / scale) / math.pi

    return _examined(results[0], cdf, median, lambda x: torch.full_like(x, info.eps * abs(median)))


EXPONENTIAL = Law(_exponential_wrong, _exponential_sample)
LOG_NORMAL = Law(_log_normal_wrong, _log_normal_sample)
CAUCHY = Law(_cauchy_wrong, _cauchy_sample)
