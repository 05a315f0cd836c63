"""Valid contents for tensors with known shapes only, so that operators accept them.

Most floats may have any value, but integers have a meaning, such as an index. The tables map the schema's argument
names to valid ranges, with reasons; some functions, such as logarithms, also limit floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import torch

from traces.exchange.layout import TensorPlace, TensorSpec, Unreadable

MAX_LISTED = 1 << 24  # integers that are listed explicitly in one call
_POINTS = [i / 20 for i in range(21)]  # probabilities of the quantiles in a distribution
_SPREAD = 4.0  # standard deviations from the mean to minimum and maximum

Arguments: TypeAlias = dict[str, Any]
Limit: TypeAlias = Callable[[Arguments, TensorPlace], int]


@dataclass(frozen=True)
class Listed:
    """Integers that are listed explicitly, for a tensor that must agree with other arguments."""

    values: np.ndarray[Any, np.dtype[np.int64]]


def _shape(arguments: Arguments, name: str) -> tuple[int, ...]:
    value = arguments[name]
    if not isinstance(value, TensorSpec):
        raise Unreadable(f"without a tensor for {name}")
    return value.shape


def _along_dim(arguments: Arguments, use: TensorPlace) -> int:
    shape = arguments["self_sizes"] if "self_sizes" in arguments else _shape(arguments, "self")
    dim = arguments.get("dim")
    if not isinstance(dim, int):
        return math.prod(shape)  # take and put_ index the flattened tensor
    if not shape:
        return 1
    if not -len(shape) <= dim < len(shape):
        raise Unreadable("with a dim that self does not have")
    return int(shape[dim])


def _along_position(arguments: Arguments, use: TensorPlace) -> int:
    masks = [v for v in arguments["indices"][: use.position] if isinstance(v, TensorSpec) and _is_mask(v)]
    dim = use.position + sum(len(mask.shape) - 1 for mask in masks)  # a mask covers as many dims as it has
    shape = _shape(arguments, "self")
    if dim >= len(shape):
        raise Unreadable("with more indices than self has dims")
    return shape[dim]


def _is_mask(t: TensorSpec) -> bool:
    return t.dtype in (torch.bool, torch.uint8)


def _rows(arguments: Arguments, use: TensorPlace) -> int:
    return int(arguments["num_weights"]) if "num_weights" in arguments else _shape(arguments, "weight")[0]


def _plane(dims: int) -> Limit:
    return lambda arguments, use: math.prod(_shape(arguments, "self")[-dims:])


def _output_plane(arguments: Arguments, use: TensorPlace) -> int:
    return math.prod(arguments["output_size"])


def _classes(arguments: Arguments, use: TensorPlace) -> int:
    shape = _shape(arguments, "self")
    return shape[1 if len(shape) > 1 else 0] if shape else 1


def _num_classes(arguments: Arguments, use: TensorPlace) -> int:
    return max(int(arguments["num_classes"]), 1)


# (start of the operator's name, argument, first invalid value, reason); the first matching row applies.
_INDICES: tuple[tuple[str, str, Limit, str], ...] = (
    ("embedding", "indices", _rows, "rows of the table"),
    ("_embedding_bag", "indices", _rows, "rows of the table"),
    ("_embedding_bag", "maximum_indices", _rows, "rows of the table"),
    ("max_pool2d_with_indices", "indices", _plane(2), "positions in the plane that was pooled"),
    ("adaptive_max_pool2d", "indices", _plane(2), "positions in the plane that was pooled"),
    ("fractional_max_pool2d", "indices", _plane(2), "positions in the plane that was pooled"),
    ("max_pool3d_with_indices", "indices", _plane(3), "positions in the volume that was pooled"),
    ("adaptive_max_pool3d", "indices", _plane(3), "positions in the volume that was pooled"),
    ("fractional_max_pool3d", "indices", _plane(3), "positions in the volume that was pooled"),
    ("max_unpool", "indices", _output_plane, "positions in the output's plane"),
    ("", "indices", _along_position, "index and index_put: the i-th tensor counts along the i-th dim"),
    ("", "index", _along_dim, "gather, scatter, index_select, take: positions along dim"),
    ("nll_loss", "target", _classes, "classes; dim 1, or dim 0 of a single sample"),
    ("multi_margin_loss", "target", _classes, "classes"),
    ("multilabel_margin_loss", "target", _classes, "classes"),
    ("one_hot", "self", _num_classes, "classes"),
    ("repeat_interleave", "repeats", lambda arguments, use: 4, "the output grows with their sum"),
    ("", "rng_state", lambda arguments, use: 1, "any seed will do"),
    ("", "philox_seed", lambda arguments, use: 1, "any seed will do"),
    ("", "philox_offset", lambda arguments, use: 1, "any offset will do"),
)
# (start of the operator's name, argument, minimum, maximum, reason)
_RANGES: tuple[tuple[str, str, float, float, str], ...] = (
    ("", "state_steps", 1.0, 100.0, "optimizers divide by 1 - beta ** step"),
    ("", "found_inf", 0.0, 0.0, "an optimizer skips its step where this is not 0"),
    ("", "exp_avg_sqs", 0.0, 2.0, "a mean of squares, of which the root is taken"),
    ("", "max_exp_avg_sqs", 0.0, 2.0, "a mean of squares, of which the root is taken"),
    ("", "state_sums", 0.0, 2.0, "a sum of squares, of which the root is taken"),
    ("", "running_var", 0.5, 2.0, "a variance, which is divided by"),
    ("", "save_var", 0.5, 2.0, "a variance, which is divided by"),
    ("", "save_invstd", 0.5, 2.0, "the inverse of a deviation"),
    ("", "invstd", 0.5, 2.0, "the inverse of a deviation"),
    ("", "rstd", 0.5, 2.0, "the inverse of a deviation"),
    ("binary_cross_entropy", "self", 0.0, 1.0, "a probability; others are an error"),
    ("binary_cross_entropy", "target", 0.0, 1.0, "a probability"),
    ("bernoulli", "self", 0.0, 1.0, "a probability; others are an error"),
    ("bernoulli", "p", 0.0, 1.0, "a probability; others are an error"),
    ("multinomial", "self", 0.0, 1.0, "weights of the draw; negative ones are an error"),
    ("rsqrt", "self", 0.5, 2.0, "a root is taken"),
    ("sqrt", "self", 0.0, 2.0, "a root is taken"),
    ("log", "self", 0.5, 2.0, "a logarithm is taken"),
)
_DTYPES = frozenset(
    (torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64)
)
_INTEGERS = (1, 9)  # for integers without a known meaning: no zero divisor, no negative exponent or shift
_SORTED = frozenset({"sorted_sequence", "boundaries"})  # arguments that are searched by bisection


def contents(base: str, arguments: Arguments, use: TensorPlace, count: int) -> dict[str, Any] | Listed:
    """Return statistics for a tensor's elements, or the exact integers.

    Args:
        base: The operator's name without namespace and overload.
        arguments: Arguments by schema name.
        use: The tensor and its place in the call.
        count: Number of elements.

    Returns:
        dict | Listed: Statistics to draw from, or explicit integers.

    Raises:
        Unreadable: If no valid value exists.
    """
    dtype = use.tensor.dtype
    if dtype is torch.bool:
        return {"count": count, "ones": count // 2}
    if (dtype.is_floating_point and dtype is not torch.float4_e2m1fn_x2) or dtype.is_complex:
        return _floats(base, use, count)
    if dtype not in _DTYPES:
        raise Unreadable(f"values of {dtype} cannot be drawn")
    try:
        return _integers(base, arguments, use, count)
    except (KeyError, TypeError, IndexError) as error:  # an overload whose arguments differ from others of its kind
        raise Unreadable(f"no valid {use.argument} can be told from the other arguments") from error


def _integers(base: str, arguments: Arguments, use: TensorPlace, count: int) -> dict[str, Any] | Listed:
    if base.startswith("_embedding_bag") and use.argument in ("offsets", "offset2bag", "bag_size"):
        return Listed(_bags(arguments, use.argument, count))
    for start, argument, limit, _ in _INDICES:
        if base.startswith(start) and use.argument == argument:
            high = limit(arguments, use)
            if high < 1 and count:
                raise Unreadable("with indices into a tensor without elements")
            return _uniform(count, 0, min(max(high, 1) - 1, torch.iinfo(use.tensor.dtype).max))
    return {**_uniform(count, *_INTEGERS), "sorted": use.argument in _SORTED}


def _bags(arguments: Arguments, name: str, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return offsets, bag of each index, or sizes, for equally sized bags; all three must agree with each other."""
    indices, last = math.prod(_shape(arguments, "indices")), bool(arguments.get("include_last_offset"))
    with_offsets = "offsets" in arguments
    bags = math.prod(_shape(arguments, "offsets")) - last if with_offsets else math.prod(_shape(arguments, "bag_size"))
    if max(count, indices, bags) > MAX_LISTED:
        raise Unreadable(f"with more than {MAX_LISTED} offsets")
    starts = np.arange(bags + 1, dtype=np.int64) * indices // max(bags, 1)
    if name == "offsets":
        return starts[:count]
    sizes = np.diff(starts)
    values = sizes if name == "bag_size" else np.repeat(np.arange(bags, dtype=np.int64), sizes)
    return np.resize(values, count)


def _floats(base: str, use: TensorPlace, count: int) -> dict[str, Any]:
    for start, argument, low, high, _ in _RANGES:
        if base.startswith(start) and use.argument == argument:
            return _uniform(count, low, high)
    inner = [NormalDist().inv_cdf(p) for p in _POINTS[1:-1]]
    stats = _stats(count, [-_SPREAD, *inner, _SPREAD], 0.0, 1.0)
    return {**stats, "sorted": use.argument in _SORTED}


def _uniform(count: int, low: float, high: float) -> dict[str, Any]:
    """Return statistics with every value from low to high, both included, equally frequent."""
    width = high - low
    whole = isinstance(low, int)
    deviation = math.sqrt(((width + 1) ** 2 - 1) / 12 if whole else width**2 / 12)
    points = [low + width * p for p in _POINTS]
    return _stats(count, [round(p) for p in points] if whole else points, (low + high) / 2, deviation)


def _stats(count: int, quantiles: list[float], mean: float, std: float) -> dict[str, Any]:
    low, high = quantiles[0], quantiles[-1]
    return {"count": count, "min": low, "max": high, "mean": mean, "std": std, "quantiles": quantiles}
