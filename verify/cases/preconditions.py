"""Preconditions that PyTorch documents but ATen does not check; if one is violated, no answer is comparable.

Generated cases are adapted to them: contents from a random generator are replaced by contents that satisfy the
precondition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from traces.overloads import base_name, resolve
from traces.subgraphs import is_subgraph
from traces.values import pack, unpack
from verify.cases.arguments import Arguments

Value = Any  # a tensor, or a number instead


class Precondition(NamedTuple):
    """A condition on an argument, or on each item in a list of tensors.

    Attributes:
        operators: Base names to which the precondition applies.
        argument: Name of the argument.
        says: PyTorch's own words (torch 2.13).
        source: Address of the page that contains them.
        holds: Returns True if the condition holds for an argument within a call.
        kept: Returns contents with the same shape that satisfy the condition and stay close to the argument's
            own.
    """

    operators: tuple[str, ...]
    argument: str
    says: str
    source: str
    holds: Callable[[Value, Arguments], bool]
    kept: Callable[[Value, Arguments], Value]


def broken(overload: str, arguments: Arguments) -> Precondition | None:
    """Return the first precondition that a call violates, or None."""
    return next((p for p in _of(overload) if not _holds(p, arguments)), None)


def has_preconditions(overload: str) -> bool:
    """Return True if PyTorch documents preconditions for some arguments of the overload."""
    return bool(_of(overload))


def keeping(overload: str, arguments: Arguments) -> Arguments:
    """Return the call with contents that satisfy the preconditions, in the same memory layout.

    Some preconditions may remain violated if no suitable contents fit that layout.
    """
    for precondition in _of(overload):
        if not _holds(precondition, arguments):
            arguments = _kept(precondition, unpack(pack(arguments)))
    return arguments


def _of(overload: str) -> list[Precondition]:
    base = "" if is_subgraph(overload) else base_name(resolve(overload)).rstrip("_")
    return [p for p in PRECONDITIONS if base in p.operators]


def _holds(precondition: Precondition, arguments: Arguments) -> bool:
    argument = arguments.get(precondition.argument)
    values = argument if isinstance(argument, list | tuple) else [argument]
    return all(v is None or _holds_nothing(v) or precondition.holds(v, arguments) for v in values)


def _holds_nothing(value: Value) -> bool:
    """Return True if the value cannot be inspected: a meta, sparse or empty tensor.

    Operators with preconditions refuse sparse tensors.
    """
    return isinstance(value, torch.Tensor) and (value.is_meta or value.layout is not torch.strided or not value.numel())


def _kept(precondition: Precondition, arguments: Arguments) -> Arguments:
    argument = arguments[precondition.argument]
    values = argument if isinstance(argument, list | tuple) else [argument]
    replaced = []
    for value in values:
        if not _holds_nothing(value) and not precondition.holds(value, arguments):
            value = _replaced(value, precondition.kept(value, arguments))
        replaced.append(value)
    return {**arguments, precondition.argument: type(argument)(replaced) if values is argument else replaced[0]}


def _replaced(value: Value, new: Value) -> Value:
    if not isinstance(value, torch.Tensor):
        return new
    if 0 in value.stride() and value.numel() > 1 and not value.is_contiguous():
        return value  # elements share memory, so an in-place copy is not possible
    return value.copy_(new)


# -- order ------------------------------------------------------------------------------------------------------------


def _is_sorted(t: torch.Tensor, arguments: Arguments) -> bool:
    """Return True if the tensor is sorted along the last dimension.

    NaN has no order, so it makes the result False. Complex numbers are refused by ATen.
    """
    return not t.dim() or t.is_complex() or bool((t[..., 1:] >= t[..., :-1]).all()) and not bool((t != t).any())


def _is_sequence(t: torch.Tensor, arguments: Arguments) -> bool:
    """Return True if the sequence is sorted, or can be sorted if there is a sorter, which is checked afterwards."""
    return _is_sorted(t, arguments) if arguments.get("sorter") is None else not bool((t != t).any())


def _sorted(t: torch.Tensor, arguments: Arguments) -> torch.Tensor:
    return _numbers(t).sort(-1).values


def _sequence(t: torch.Tensor, arguments: Arguments) -> torch.Tensor:
    return _numbers(t) if arguments.get("sorter") is not None else _sorted(t, arguments)


def _numbers(t: torch.Tensor) -> torch.Tensor:
    """Replace NaN by 0."""
    return torch.where(t == t, t, torch.zeros_like(t))


def _is_sorter(t: torch.Tensor, arguments: Arguments) -> bool:
    sequence = arguments["sorted_sequence"]
    if t.shape != sequence.shape or not t.dim():
        return True  # ATen refuses the call
    permutes = torch.equal(t.sort(-1).values, torch.arange(t.shape[-1]).expand(t.shape).to(t.dtype))
    return permutes and _is_sorted(sequence.gather(-1, t), arguments)


def _sorter(t: torch.Tensor, arguments: Arguments) -> torch.Tensor:
    return _numbers(arguments["sorted_sequence"]).sort(dim=-1, stable=True).indices


def _increases(t: Value, arguments: Arguments) -> bool:
    if not isinstance(t, torch.Tensor) or t.dim() != 1 or t.is_complex():
        return True  # a number of bins, or a call that ATen refuses
    return bool((t[1:] > t[:-1]).all()) and not bool((t != t).any())


def _increasing(t: torch.Tensor, arguments: Arguments) -> torch.Tensor:
    """Return the numbers sorted, with equal ones moved apart by the smallest representable steps."""
    ordered, n = _ordinals(_numbers(t).sort().values), torch.arange(t.numel())
    least, most = (int(_ordinals(torch.tensor([end], dtype=t.dtype))) for end in _ends(t.dtype))
    ordered = ordered.clamp(least, most)
    ordered = torch.minimum((ordered - n).cummax(0).values + n, most - n.flip(0))
    return _of_ordinals(ordered, t.dtype)


def _ends(dtype: torch.dtype) -> tuple[float, float]:
    if dtype.is_floating_point:
        return -torch.inf, torch.inf
    info = torch.iinfo(torch.uint8 if dtype is torch.bool else dtype)
    return max(info.min, -(2**62)), 1 if dtype is torch.bool else min(info.max, 2**62)


def _ordinals(t: torch.Tensor) -> torch.Tensor:
    """Map numbers to integers in the same order, so that adjacent numbers map to adjacent integers."""
    if not t.dtype.is_floating_point:
        return t.long()
    bits = t.view(_BITS[t.dtype.itemsize]).long()
    return torch.where(t.signbit(), -(bits & _magnitude(t.dtype)), bits)


def _of_ordinals(ordinals: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if not dtype.is_floating_point:
        return ordinals.to(dtype)
    numbers = ordinals.abs().to(_BITS[dtype.itemsize]).view(dtype)
    return torch.where(ordinals < 0, -numbers, numbers)


def _magnitude(dtype: torch.dtype) -> int:
    return (1 << 8 * dtype.itemsize - 1) - 1


_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}

# -- others -----------------------------------------------------------------------------------------------------------


def _is_unique(t: Value, arguments: Arguments) -> bool:
    is_assumed = arguments.get("assume_unique") and isinstance(t, torch.Tensor)
    return not is_assumed or _increases(t.reshape(-1).sort().values, arguments)


def _unique(t: torch.Tensor, arguments: Arguments) -> torch.Tensor:
    flat = _numbers(t).reshape(-1)
    return torch.empty_like(flat).scatter_(0, flat.argsort(), _increasing(flat, arguments)).view(t.shape)


def _width(arguments: Arguments) -> int:
    """Return the number of bits in the shifted integers, or 0 if the promoted dtype is not an integer."""
    dtype = torch.result_type(arguments["self"], arguments["other"])
    return 0 if dtype.is_floating_point or dtype is torch.bool else 8 * dtype.itemsize


def _is_shift(value: Value, arguments: Arguments) -> bool:
    width, amounts = _width(arguments), torch.as_tensor(value)
    return not width or bool(((amounts >= 0) & (amounts < width)).all())


def _shift(value: Value, arguments: Arguments) -> Value:
    width = _width(arguments)
    return (value.long() % width).to(value.dtype) if isinstance(value, torch.Tensor) else value % width


_PAGES = "https://docs.pytorch.org/docs/stable/generated/"
_SHIFT = (
    "In any case, if the value of the right operand is negative or is greater or equal to the number of bits in the "
    "promoted left operand, the behavior is undefined."
)
_POLAR = "The behavior of this function is undefined if abs is negative or NaN, or if angle is infinite."
_UNIQUE = (
    "If True, assumes both elements and test_elements contain unique elements, which can speed up the calculation."
)
_EDGES = "Each 1D tensor should contain a strictly increasing sequence with at least one element."
_BINS = "It should contain at least 2 elements and its elements should be increasing."

PRECONDITIONS = (
    Precondition(
        ("bucketize",), "boundaries",
        "1-D tensor, must contain a strictly increasing sequence, or the return value is undefined.",
        f"{_PAGES}torch.bucketize.html", _increases, _increasing,
    ),
    Precondition(
        ("searchsorted",), "sorted_sequence",
        "N-D or 1-D tensor, containing monotonically increasing sequence on the innermost dimension unless sorter is "
        "provided, in which case the sequence does not need to be sorted",
        f"{_PAGES}torch.searchsorted.html", _is_sequence, _sequence,
    ),
    Precondition(
        ("searchsorted",), "sorter",
        "if provided, a tensor matching the shape of the unsorted sorted_sequence containing a sequence of indices "
        "that sort it in the ascending order on the innermost dimension",
        f"{_PAGES}torch.searchsorted.html", _is_sorter, _sorter,
    ),
    Precondition(("histogram",), "bins", _BINS, f"{_PAGES}torch.histogram.html", _increases, _increasing),
    Precondition(
        ("histogramdd", "_histogramdd_from_bin_tensors"), "bins",
        _EDGES, f"{_PAGES}torch.histogramdd.html", _increases, _increasing,
    ),
    Precondition(("isin",), "elements", _UNIQUE, f"{_PAGES}torch.isin.html", _is_unique, _unique),
    Precondition(("isin",), "test_elements", _UNIQUE, f"{_PAGES}torch.isin.html", _is_unique, _unique),
    Precondition(
        ("bitwise_left_shift", "__lshift", "__ilshift"), "other",
        _SHIFT, f"{_PAGES}torch.bitwise_left_shift.html", _is_shift, _shift,
    ),
    Precondition(
        ("bitwise_right_shift", "__rshift", "__irshift"), "other",
        _SHIFT, f"{_PAGES}torch.bitwise_right_shift.html", _is_shift, _shift,
    ),
    Precondition(
        ("polar",), "abs", _POLAR, f"{_PAGES}torch.polar.html",
        lambda t, _: bool((t >= 0).all()), lambda t, _: _numbers(t).abs(),
    ),
    Precondition(
        ("polar",), "angle", _POLAR, f"{_PAGES}torch.polar.html",
        lambda t, _: not bool(t.isinf().any()), lambda t, _: torch.where(t.isinf(), torch.ones_like(t), t),
    ),
    Precondition(
        ("_grouped_mm", "_scaled_grouped_mm"), "offs",
        "Optional 1D tensor of monotonically increasing int32 offsets that delimit the jagged dimension of any 2D "
        "operand.",
        f"{_PAGES}torch.nn.functional.grouped_mm.html", _is_sorted, _sorted,
    ),
)  # fmt: skip
