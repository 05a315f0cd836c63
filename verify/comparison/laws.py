"""Laws for random overloads: the conditions on an answer given its draws, and the draws themselves.

An overload without a law is not judged. Choices that ATen leaves open are allowed: results may be rounded either
way.
"""

from __future__ import annotations

import math
from functools import cache

import torch

from traces.overloads import base_name, bind, kind, resolve, written
from traces.values import Packed, unpack
from verify.cases import references
from verify.cases.case import Expected
from verify.cases.packed import contents, tensor_names
from verify.comparison.continuous import CAUCHY, EXPONENTIAL, LOG_NORMAL
from verify.comparison.draws import DrawSample
from verify.comparison.integers import GEOMETRIC, MULTINOMIAL, POISSON, RANDPERM, UNIFORM_INTEGERS
from verify.comparison.lawful import (
    FP32,
    FP64,
    Arguments,
    Law,
    Results,
    describe_wrong,
    events,
    first,
    nothing,
    numbers,
)


@cache
def law_of(overload: str) -> Law | None:
    """Return the law for an overload, in-place and `out=` forms included; None if it draws nothing or has no law."""
    op = resolve(overload)
    if kind(op) != "random":
        return None
    return _LAWS.get(base_name(op).removesuffix("_"))


def judged_by(overload: str) -> str:
    """Return how answers that depend on random numbers are judged: `law`, or `fixed` if the numbers are fixed.

    The result is empty for an overload that has neither.
    """
    drops = references.has(overload) and any(a.name == "dropout_p" for a in resolve(overload)._schema.arguments)
    return "law" if law_of(overload) is not None else "fixed" if drops else ""


def arguments_of(expected: Expected) -> Arguments:
    """Return a case's arguments by name, with defaults filled in."""
    return bind(resolve(expected.overload), (), unpack(expected.before))


def results(expected: Expected, answer: Packed) -> Results:
    """Return an answer's results in order, then the arguments that it wrote; its structure must be as expected."""
    returned = range(len(expected.before.tensors), len(expected.native.tensors))
    names, targets = tensor_names(expected.before.tree), written(resolve(expected.overload)) - {"out"}
    return [contents(answer, i) for i in (*returned, *(i for i, name in enumerate(names) if name in targets))]


def unlawful(expected: Expected, answer: Packed) -> str:
    """Describe a contradiction between an answer and its own draws; '' if there is none, or no law."""
    law = law_of(expected.overload)
    return law.wrong(arguments_of(expected), results(expected, answer)) if law is not None else ""


# -- 0 or 1 -----------------------------------------------------------------------------------------------------------


def _probabilities(arguments: Arguments, like: torch.Tensor) -> torch.Tensor:
    p = arguments.get("p", arguments.get("self"))
    p = p if isinstance(p, torch.Tensor) else torch.tensor(p, dtype=torch.float64)
    return p.to(torch.float64).expand(like.shape)


def _bernoulli_wrong(arguments: Arguments, results: Results) -> str:
    return _not_of(results[0], _probabilities(arguments, results[0]), "the result")


def _not_of(ones: torch.Tensor, p: torch.Tensor, name: str) -> str:
    """Describe elements that are not events with these probabilities; return '' if there are none."""
    wrong = (ones != 0) & (ones != 1)
    certain = ((p <= 0) & (ones != 0)) | ((p >= 1) & (ones != 1))
    if wrong.any():
        return f"{name} has {int(wrong.sum())} of {ones.numel()} elements that are neither 0 nor 1{first(ones, wrong)}"
    if certain.any():
        return f"{name} has {int(certain.sum())} elements of probability 0 or 1 that are the other{first(p, certain)}"
    return ""


def _bernoulli_sample(arguments: Arguments, results: Results) -> DrawSample:
    return events(results[0], _probabilities(arguments, results[0]))


# -- dropout ----------------------------------------------------------------------------------------------------------


def _keeping(arguments: Arguments, like: torch.Tensor) -> torch.Tensor:
    keep = 1.0 if arguments["train"] is False else 1.0 - arguments["p"]
    return torch.full(like.shape, keep, dtype=torch.float64)


def _dropout_wrong(arguments: Arguments, results: Results) -> str:
    """Check that kept elements are the input times 1 / (1 - p), and dropped ones are 0.

    Dropped elements may also be NaN, which is ATen's 0 times infinity.
    """
    out, mask = results
    source, keep = arguments["input"], _keeping(arguments, mask)
    flawed = _not_of(mask, keep, "the mask")
    if flawed or not out.numel():
        return flawed
    scale = 1 / float(keep.flatten()[0]) if keep.flatten()[0] > 0 else 0.0
    exact, have = source.double() * scale, out.double()
    info, computed = torch.finfo(out.dtype), torch.finfo(torch.promote_types(out.dtype, torch.float32))
    close = (have - exact).abs() <= (info.eps + 2 * computed.eps) * exact.abs() + info.smallest_normal * info.eps
    overflow = have.isinf() & (exact.abs() >= info.max) & (have.sign() == exact.sign())
    right = close | overflow | (have == exact) | (have.isnan() & exact.isnan())
    retained = mask.bool()
    wrong = retained & ~right
    if wrong.any():
        text = f"{int(wrong.sum())} of {int(retained.sum())} elements that the mask keeps are not input * {scale:.6g}"
        return f"{text}{first(out / source, wrong, 'output / input')}"
    wrong = ~retained & (have != 0) & ~(have.isnan() & ~source.isfinite())
    if wrong.any():
        return (
            f"{int(wrong.sum())} of {int((~retained).sum())} elements that the mask drops are not 0{first(out, wrong)}"
        )
    return ""


def _dropout_sample(arguments: Arguments, results: Results) -> DrawSample:
    return events(results[1], _keeping(arguments, results[1]))


# -- uniform ----------------------------------------------------------------------------------------------------------


def _range(arguments: Arguments) -> tuple[float, float]:
    return float(arguments.get("from", 0.0)), float(arguments.get("to", 1.0))


def _uniform_wrong(arguments: Arguments, results: Results) -> str:
    """Check that results are in [from, to), or equal to `from` as rounded to the dtype."""
    out = _real(results[0])
    low, high = _range(arguments)
    least = float(torch.tensor(low, dtype=out.dtype))
    have = out.double()
    wrong = ~(((have >= low) & (have < high)) | ((have >= min(low, least)) & (have <= least)))
    if not wrong.any():
        return ""
    return f"{int(wrong.sum())} of {out.numel()} elements are not in [{low:g}, {high:g}){first(out, wrong)}"


def _uniform_sample(arguments: Arguments, results: Results) -> DrawSample:
    """Return the draws.

    The error is one dtype step at the range end that is farther from 0, like ATen's own, plus the roundings of
    from + (to - from) * u.
    """
    out = _real(results[0]).reshape(-1)
    low, high = _range(arguments)
    computed = torch.finfo(torch.promote_types(out.dtype, torch.float32)).eps
    off = (torch.finfo(out.dtype).eps + 3 * computed) * max(abs(low), abs(high))
    if high - low <= 4 * off:
        return nothing()
    return numbers((out.double() - low) / (high - low), off / (high - low))


# -- normal -----------------------------------------------------------------------------------------------------------


def _normal(arguments: Arguments, result: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the result, its means and its standard deviations, all flat.

    The parts of a complex number share its variance.
    """
    parameters = (arguments.get("mean", 0.0), arguments.get("std", 1.0))
    mean, std = (torch.as_tensor(v, dtype=torch.float64).expand(result.shape).reshape(-1) for v in parameters)
    if result.is_complex():
        mean, std = mean.repeat_interleave(2), std.repeat_interleave(2) * math.sqrt(0.5)
    return _real(result).reshape(-1), mean, std


def _real(t: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(t) if t.is_complex() else t


def _normal_wrong(arguments: Arguments, results: Results) -> str:
    out, mean, std = _normal(arguments, results[0])
    if not out.numel():  # an empty result may have an integer dtype
        return ""
    wrong = (std == 0) & (out != mean.to(out.dtype))
    if wrong.any():
        return f"{int(wrong.sum())} elements of standard deviation 0 are not the mean{first(out, wrong)}"
    usual = mean.abs() + 16 * std < torch.finfo(out.dtype).max
    wrong = usual & ~out.isfinite()
    return f"{int(wrong.sum())} of {out.numel()} elements are not finite{first(out, wrong)}" if wrong.any() else ""


def _normal_sample(arguments: Arguments, results: Results) -> DrawSample:
    """Return the draws; results in half types are rounded from fp32.

    A mean far larger than the standard deviation makes them untestable.
    """
    out, mean, std = _normal(arguments, results[0])
    if not out.numel():
        return nothing()
    info = torch.finfo(out.dtype)
    testable = (
        (std > 0) & (mean.abs() * info.eps < std / 16) & (std > info.smallest_normal) & (mean.abs() + std < info.max)
    )
    if not testable.all():
        return nothing()
    out = out.double()
    z = (out - mean) / std
    off = info.eps * torch.maximum(out.abs(), mean.abs()) / std
    made = FP64 if info.bits == 64 else FP32
    near = 0.4 * info.eps * mean.abs() / std + made
    below, above = (torch.special.ndtr(x) for x in (z - off, z + off))
    bounds = (0.5 - near, 0.5 + near, (below - made).clamp(0, 1), (above + made).clamp(0, 1), z, off)
    return DrawSample((z < 0).numpy(), *(b.numpy() for b in bounds))


# -- rectified linear units of random slopes --------------------------------------------------------------------------


def _rrelu_wrong(arguments: Arguments, results: Results) -> str:
    """Check leaky rectified linear units with random slopes.

    In training, the noise is a slope in [lower, upper] if the input is not positive, and 1 otherwise, and the
    result is input * noise. Outside training, the noise is unchanged, and the slope is the mean of the two
    bounds.
    """
    out, noise, source = results[0], results[-1], arguments["self"]
    low, high = float(arguments["lower"]), float(arguments["upper"])
    sloped, slope = source <= 0, noise.double()
    if arguments["training"]:
        least, most = (float(torch.tensor(x, dtype=out.dtype)) for x in (low, high))
        in_range = (slope >= min(low, least)) & (slope <= max(high, most))
        flawed = describe_wrong(noise, sloped & ~in_range, f"of the noise are not in [{low:g}, {high:g}]")
        flawed = flawed or describe_wrong(
            noise, ~sloped & (noise != 1), "of the noise are not 1, of an input that is positive"
        )
    else:
        unchanged = (noise == arguments["noise"]) | (noise.isnan() & arguments["noise"].isnan())
        flawed = describe_wrong(noise, ~unchanged, "of the noise were changed out of training")
        slope = torch.where(sloped, torch.full_like(slope, (low + high) / 2), torch.ones_like(slope))
    exact, have, info = source.double() * slope, out.double(), torch.finfo(out.dtype)
    close = (have - exact).abs() <= 2 * info.eps * exact.abs() + 2 * info.smallest_normal * info.eps
    return flawed or describe_wrong(
        out, ~(close | (have == exact) | (have.isnan() & exact.isnan())), "are not input * noise"
    )


def _rrelu_sample(arguments: Arguments, results: Results) -> DrawSample:
    if not arguments["training"]:
        return nothing()
    drawn = results[-1][arguments["self"] <= 0]
    return _uniform_sample({"from": arguments["lower"], "to": arguments["upper"]}, [drawn])


_UNIFORM = Law(_uniform_wrong, _uniform_sample)
_NORMAL = Law(_normal_wrong, _normal_sample)
_RRELU = Law(_rrelu_wrong, _rrelu_sample)
_LAWS = {  # by base name of the operator
    "bernoulli": Law(_bernoulli_wrong, _bernoulli_sample),
    "native_dropout": Law(_dropout_wrong, _dropout_sample),
    "uniform": _UNIFORM,
    "rand": _UNIFORM,
    "rand_like": _UNIFORM,
    "normal": _NORMAL,
    "normal_functional": _NORMAL,
    "randn": _NORMAL,
    "randn_like": _NORMAL,
    "exponential": EXPONENTIAL,
    "log_normal": LOG_NORMAL,
    "cauchy": CAUCHY,
    "random": UNIFORM_INTEGERS,
    "randint": UNIFORM_INTEGERS,
    "randint_like": UNIFORM_INTEGERS,
    "geometric": GEOMETRIC,
    "poisson": POISSON,
    "multinomial": MULTINOMIAL,
    "randperm": RANDPERM,
    "rrelu_with_noise": _RRELU,
    "rrelu_with_noise_functional": _RRELU,
}
