"""Differences between the simulator and a GPU that hardware leaves open, and noise that represents each difference.

A program that has such an operation runs in the simulator again and again, with noise after each such operation. The
spread of the results is the tolerance for this program, element by element. So a tolerance follows from the reason and
from the arithmetic after it, and operations without an entry in ALLOWANCES are compared bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

RUNS = 10  # runs with noise, for each program that has an allowance
LEAST_STEPS = 2  # a result with an allowance may always deviate by these units in the last place
SLACK = 6.0  # a GPU may deviate by this multiple of the largest deviation in these runs


@dataclass(frozen=True)
class Allowance:
    """Noise for one kind of operation.

    Attributes:
        reason: Why a GPU's result may differ from the simulator's.
        steps: Largest error, in units in the last place.
        relative: Largest error as a multiple of the machine epsilon and the magnitudes that a program passes.
    """

    reason: str
    steps: int = 1
    relative: float = 0.0


ALLOWANCES = {
    "contraction": Allowance("a compiler rounds a product and a sum once, or twice", relative=1.0),
    "division": Allowance("div.full.f32 is off by two units in the last place (PTX ISA)", steps=2),
    "exp": Allowance(
        "ex2.approx of a product with log2(e), whose error grows with the argument", steps=4, relative=2.0
    ),
    "exp2": Allowance("ex2.approx.ftz.f32 has a relative error of 2^-22.5 (PTX ISA)", steps=2),
    "log": Allowance("CUDA's device library: one unit in the last place", steps=2),
    "log2": Allowance("CUDA's device library: one unit in the last place", steps=2),
    "sin": Allowance("CUDA's device library: two units in the last place", steps=3),
    "cos": Allowance("CUDA's device library: two units in the last place", steps=3),
    "erf": Allowance("CUDA's device library: two units in the last place", steps=3),
    "sqrt": Allowance("sqrt.approx.ftz.f32 has a relative error of 2^-23 (PTX ISA)", steps=1),
    "rsqrt": Allowance("rsqrt.approx.ftz.f32 has a relative error of 2^-22.9 (PTX ISA)", steps=2),
    "sigmoid": Allowance("an exponential, a sum and a division", steps=8, relative=2.0),
    "softmax": Allowance("an exponential, a sum in another order, and a division", steps=16, relative=2.0),
    "order of sums": Allowance("a reduction adds in an order that the layout determines", relative=4.0),
    "order of scans": Allowance("a scan adds in an order that the layout determines", relative=4.0),
    "dot": Allowance("tensor cores add products in their own order, with truncated sums", relative=8.0),
    "tf32": Allowance("tensor cores read float32 as TF32 and truncate sums", relative=8.0),
    "propagated": Allowance("an operation on values that have an allowance rounds otherwise", steps=1),
    "sign of zero": Allowance("max and min order -0 before +0 on a GPU; the simulator returns either", steps=0),
}

ORDERS = ("order of sums", "order of scans", "dot", "tf32")
LARGEST = 2.0**127  # for sums of magnitudes in float32; above it a partial sum may overflow
EPSILON = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-23, "fp64": 2.0**-52}
_random, _sign = np.random.default_rng(0), 1


def reseed(number: int) -> None:
    """Choose the noise for the next run; an odd run has the previous run's noise with the other sign."""
    global _random, _sign
    _random, _sign = np.random.default_rng(number // 2), 1 - 2 * (number % 2)


def perturb(value: Any, name: str, *scales: Any) -> Any:
    """Return an interpreter's tensor with an allowance's noise; interpreted kernels call it.

    Args:
        value: Result to change.
        name: Key of ALLOWANCES.
        scales: Tensors whose magnitudes bound the error, in addition to the result's own.
    """
    allowance, handle = ALLOWANCES[name], value.handle
    numbers = widened(handle.data, handle.dtype.scalar.name)
    noise, overflows = np.zeros(numbers.shape), np.zeros(numbers.shape, bool)
    epsilon = EPSILON[handle.dtype.scalar.name]
    with np.errstate(all="ignore"):
        for scale in scales if allowance.relative else ():
            magnitude = np.abs(widened(scale.handle.data, scale.handle.dtype.scalar.name)).astype(np.float64)
            overflows |= ~(magnitude < LARGEST)
            noise = noise + _signs(numbers.shape) * (allowance.relative * epsilon) * magnitude
        noisy = narrowed(numbers.astype(np.float64) + noise, handle.dtype.scalar.name) if noise.any() else handle.data
    data = _stepped(np.broadcast_to(noisy, handle.data.shape), allowance.steps, np.sign(noise) * np.sign(numbers))
    if overflows.any() and name in ORDERS:  # in which order partial sums overflow decides between infinities and NaN
        anything = narrowed(_random.choice([np.inf, -np.inf, np.nan], numbers.shape), handle.dtype.scalar.name)
        data = np.where(overflows, anything, data)
    return type(value)(type(handle)(data, handle.dtype.scalar), value.type)


def _signs(shape: tuple[int, ...]) -> np.ndarray:
    """Return factors between a half and one, with random signs."""
    return _sign * _random.choice([-1.0, 1.0], shape) * _random.uniform(0.5, 1.0, shape)


def _stepped(data: np.ndarray, most: int, outwards: np.ndarray) -> np.ndarray:
    """Return numbers that are up to `most` representable numbers away; NaN and infinities stay.

    Args:
        data: Numbers as the interpreter stores them.
        most: Largest distance.
        outwards: 1 or -1 to move away from zero or towards it, as the rest of the noise does; otherwise at random.
    """
    bits = np.ascontiguousarray(data).reshape(data.shape).view(f"i{data.itemsize}")
    highest = np.array(~(-1 << (data.itemsize * 8 - 1)), bits.dtype)  # all bits except the sign
    exponent = {2: 0x7C00 if data.dtype == np.float16 else 0x7F80, 4: 0x7F800000, 8: 0x7FF0000000000000}[data.itemsize]
    magnitude = bits & highest
    direction = np.where(np.isfinite(outwards) & (outwards != 0), outwards, _sign * _random.choice([-1, 1], data.shape))
    direction = np.where(magnitude == 0, 1, direction)
    # one more step than `most`, so that two errors of one step seldom cancel in every run
    steps = _random.integers(max(1, most // 2), most + 2, data.shape) * direction.astype(np.int64)
    moved = np.clip(magnitude + steps.astype(bits.dtype), 0, exponent).astype(bits.dtype)
    moved = np.where(magnitude >= exponent, magnitude, moved)
    stepped: np.ndarray = (moved | (bits & ~highest)).view(data.dtype)
    return stepped


def widened(data: np.ndarray, dtype: str) -> np.ndarray:
    """Return numbers in Triton's type `dtype`; the interpreter stores bfloat16 as bits."""
    if dtype in ("bf16", "bfloat16"):
        wide: np.ndarray = (data.astype(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return wide
    return data


def narrowed(numbers: np.ndarray, dtype: str) -> np.ndarray:
    """Return float64 numbers as the interpreter stores them."""
    if dtype == "bf16":
        wide = np.ascontiguousarray(numbers.astype(np.float32)).reshape(numbers.shape)
        rounded: np.ndarray = (wide.view(np.uint32) + np.uint32(0x8000)) >> 16
        return np.where(np.isnan(wide), 0x7FC0, rounded).astype(np.uint16)
    return numbers.astype({"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[dtype])
