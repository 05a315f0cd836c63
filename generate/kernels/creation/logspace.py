"""aten::logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None) -> Tensor
aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None,
    Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None,
    Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, ScalarType? dtype=None,
    Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor

Element i is base ** linspace(start, end, steps)[i], computed in fp64. fp16 and bf16 results use fp32 if the
exponents of 2 are small.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise, flat_index
from blocks.lines import line, whole_line

OVERLOADS = (
    "aten::logspace",
    "aten::logspace.Tensor_Tensor",
    "aten::logspace.Tensor_Scalar",
    "aten::logspace.Scalar_Tensor",
)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

# Times the relative error of 2^-22 (see `short_power_line`), this is 2^-12, below the rounding error of fp16.
MOST_EXPONENT = 1024


@triton.jit
def power_at(y, base, size, WHOLE: tl.constexpr):
    base = base + tl.zeros_like(y)
    r = tl.exp2(y * size)
    near = tl.floor(r + 0.5)
    if WHOLE:
        r = tl.where(tl.abs(r - near) < 1e-12 * near, near, r)
    whole = tl.floor(y) == y
    odd = whole & (y - 2 * tl.floor(y * 0.5) == 1)
    r = tl.where((base < 0) & odd, -r, r)
    r = tl.where((base < 0) & ~whole, float("nan"), r)
    return tl.where((y == 0) | (base == 1), 1.0, r)


@triton.jit
def whole_power_line(i, start, end, steps, half, base, size):
    return power_at(whole_line(i, start, end, steps, half), base, size, True)


@triton.jit
def float_power_line(i, start, end, steps, half, base, size):
    return power_at(line(i, start, end, steps, half), base, size, False)


@triton.jit
def short_power_line(i, start, end, steps, half, size):
    """Return the power in fp32, as the square of root = 2^(exponent / 2).

    The relative error is at most 2^-22 times the larger exponent of 2. The root is not denormal, even if the
    power is.
    """
    root = tl.exp2(line(i, start * (0.5 * size), end * (0.5 * size), steps, half))
    return root * root


def short_exponents(start, end, base, size):
    """Return True if both ends are Python numbers, and powers of 2 with exponents up to 1024 in magnitude.

    The base has to be positive, finite, and not 1.
    """
    if isinstance(start, torch.Tensor) or isinstance(end, torch.Tensor) or not 0 < base < math.inf or base == 1:
        return False
    return max(abs(start), abs(end)) * abs(size) <= MOST_EXPONENT


def wrapper(start, end, steps, base=10.0, *, dtype=None, layout=None, device=None, pin_memory=None):
    if steps < 0 or any([isinstance(x, torch.Tensor) and x.dim() for x in (start, end)]):
        raise RuntimeError(f"steps must be >= 0 and the ends numbers, got {steps} steps")
    tensors = [x for x in (start, end) if isinstance(x, torch.Tensor)]
    device = tensors[0].device if tensors else device
    out = torch.empty(steps, dtype=dtype or torch.get_default_dtype(), device=device)
    function = float_power_line if out.is_floating_point() else whole_power_line
    size = math.log2(abs(base)) if base else -math.inf
    numbers = max(steps - 1, 1), max(steps // 2, 1), base, size
    last = start if steps == 1 else end
    if out.is_floating_point() and out.itemsize == 2 and short_exponents(start, last, base, size):
        numbers = max(steps - 1, 1), max(steps // 2, 1), size
        return elementwise(
            short_power_line, start, last, numbers=numbers, source=(flat_index,), common=torch.float32, out=out
        )
    return elementwise(function, start, last, numbers=numbers, source=(flat_index,), common=torch.float64, out=out)
