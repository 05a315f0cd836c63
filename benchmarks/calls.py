"""Calls as models in production make them, for benchmarks/operators.py: overload by overload, made where they are run.

Element by element: every tensor of 2^14, 2^20 and 2^26 elements, arguments by the schema. Else what the tables of the
modules beside this one say: calls of CALLS are made in float32 and bfloat16, those of SINGLE in float32 alone, for what
ATen's kernels have no other of or no floating tensor is of, and those of HALF in bfloat16 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch._ops import OpOverload

from benchmarks import calls_indexing, calls_linalg, calls_memory, calls_training, calls_vision
from benchmarks.maker import Arguments, Maker, Table
from traces.overloads import resolve
from verify.operators import elementwise

SIZES = (1 << 14, 1 << 20, 1 << 26)
Made = tuple[tuple[Any, ...], dict[str, Any]]

TABLES = (
    calls_indexing.CALLS,
    calls_linalg.CALLS,
    calls_memory.CALLS,
    calls_training.CALLS,
    calls_vision.CALLS,
)
SINGLE = (calls_indexing.SINGLE, calls_linalg.SINGLE, calls_memory.SINGLE, calls_training.SINGLE)
HALF = (calls_training.HALF,)
_CALLS: Table = {overload: made for table in (*TABLES, *SINGLE, *HALF) for overload, made in table.items()}
_DTYPES: dict[str, tuple[torch.dtype, ...]] = {
    **{overload: (torch.float32,) for table in SINGLE for overload in table},
    **{overload: (torch.bfloat16,) for table in HALF for overload in table},
}

# Overloads without calls, of which a GPU has no kernel of ATen's to be compared with.
WITHOUT = {
    "aten::_histogramdd_bin_edges": "ATen has it for CPUs and MPS",
    "aten::_histogramdd_from_bin_cts": "ATen has it for CPUs and MPS",
    "aten::_histogramdd_from_bin_tensors": "ATen has it for CPUs and MPS",
    "aten::histogram.bin_ct": "ATen has it for CPUs and MPS",
    "aten::histogram.bins_tensor": "ATen has it for CPUs and MPS",
    "aten::_scaled_dot_product_flash_attention_for_cpu": "written for CPUs",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": "written for CPUs",
    "aten::miopen_batch_norm": "MIOpen is a library of AMD's GPUs; builds for CUDA are without it",
    "aten::miopen_batch_norm_backward": "MIOpen is a library of AMD's GPUs; builds for CUDA are without it",
}

# What the schema does not tell of arguments of operators element by element.
_GIVEN: dict[str, dict[str, Any]] = {
    "aten::clamp": {"min": -0.5, "max": 0.5},
    "aten::pow.Tensor_Scalar": {"exponent": 2.5},
    "aten::round.decimals": {"decimals": 2},
    "aten::polygamma": {"n": 1},
    "aten::div.Tensor_mode": {"rounding_mode": "floor"},
    "aten::elu_backward": {"is_result": False, "alpha": 1.0, "scale": 1.0, "input_scale": 1.0},
    "aten::hardtanh_backward": {"min_val": -1.0, "max_val": 1.0},
    "aten::native_dropout": {"p": 0.1, "train": True},
    "aten::leaky_relu_backward": {"self_is_result": False, "negative_slope": 0.01},
    "aten::div.Scalar_mode": {"rounding_mode": "floor"},
    "aten::mvlgamma": {"p": 2},
    "aten::rrelu_with_noise_backward": {"lower": 0.125, "upper": 1 / 3, "training": True, "self_is_result": False},
}
_BOUNDED = {"aten::clamp.Tensor"}  # that want a tensor which their schema calls optional
_WHOLE = ("bitwise_", "gcd", "lcm")  # operators of integers
_SINGLE = ("special_", "polygamma")  # that ATen has no half precision of
_ALIKE = {
    "aten::binary_cross_entropy", "aten::binary_cross_entropy_backward", "aten::binary_cross_entropy_with_logits",
    "aten::elu_backward", "aten::floor_divide", "aten::glu", "aten::hardshrink_backward", "aten::hardsigmoid_backward",
    "aten::hardswish", "aten::hardswish_backward", "aten::hardtanh_backward", "aten::huber_loss",
    "aten::leaky_relu_backward", "aten::log_sigmoid_backward", "aten::log_sigmoid_forward", "aten::mish_backward",
    "aten::mse_loss", "aten::ones_like", "aten::rsub.Tensor", "aten::smooth_l1_loss", "aten::soft_margin_loss",
    "aten::softplus_backward", "aten::softshrink_backward", "aten::sum", "aten::mean", "aten::zeros_like",
    "aten::native_dropout", "aten::clone", "aten::dist", "aten::vdot", "aten::floor_divide.Scalar",
    "aten::rrelu_with_noise_backward",
}  # fmt: skip  # all of whose tensors are of one shape, and that are not told as element by element


@dataclass(frozen=True)
class Call:
    """One call. dtype: of its floating tensors. make: its arguments, on a device."""

    overload: str
    dtype: torch.dtype
    make: Callable[[str], Made]

    @property
    def func(self) -> OpOverload:
        return resolve(self.overload)


def calls(overloads: Sequence[str]) -> Iterator[Call]:
    """Of each overload that this module knows calls of."""
    for overload in overloads:
        lists = any(str(a.type) == "List[Tensor]" for a in resolve(overload)._schema.arguments)
        single = overload.removeprefix("aten::").startswith(_SINGLE)
        for dtype in _DTYPES.get(overload, (torch.float32,) if single else (torch.float32, torch.bfloat16)):
            for made in _CALLS.get(overload, ()):
                yield Call(overload, dtype, partial(_made, made, dtype))
            if overload not in _CALLS and not lists and (overload in _ALIKE or elementwise(overload)):
                for n in SIZES:
                    yield Call(overload, dtype, partial(_by_schema, overload, n, dtype))


def _made(arguments: Arguments, dtype: torch.dtype, device: str) -> Made:
    given = list(arguments(Maker(dtype, device)))
    named = given.pop() if given and isinstance(given[-1], dict) else {}
    return tuple(given), named


def _by_schema(overload: str, n: int, dtype: torch.dtype, device: str) -> Made:
    """Raises LookupError for an argument of which nothing is known."""
    make, stem = Maker(dtype, device), overload.removeprefix("aten::")
    positional, named = [], {}
    for argument in resolve(overload)._schema.arguments:
        kind = str(argument.type)
        if argument.name in _GIVEN.get(overload, {}):
            value = _GIVEN[overload][argument.name]
        elif kind == "Tensor" or (
            kind == "Optional[Tensor]" and (overload in _BOUNDED or not argument.has_default_value())
        ):
            value = make.below(1 << 10, n).to(torch.int32) + 1 if stem.startswith(_WHOLE) else make.unit(n)
            value = value < 0.5 if argument.name in ("condition", "mask") else value
        elif argument.name == "device":
            value = device
        elif argument.has_default_value():
            value = argument.default_value
        elif kind in ("number", "float"):
            value = 0.5
        else:
            raise LookupError(f"{overload}: {argument.name} of type {kind}")
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return tuple(positional), named
