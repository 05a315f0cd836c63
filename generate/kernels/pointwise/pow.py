"""aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor

Computes 2^(y * log2|x|), with the signs and limits of IEEE 754's pow. fp16 and bf16 compute in fp32, and fp32
computes in fp64, because the rounding error in log2 grows with the exponent. A few exponents use
multiplications or roots.

Integers use repeated squaring, which is exact modulo 2^bits. For a negative exponent the result is 0, except
for bases 1 and -1.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity, reciprocal_root, root, square
from blocks.elementwise import elementwise
from blocks.functions import exp2
from blocks.number_range import without_overflow
from blocks.types import common_dtype

OVERLOADS = ("aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor", "aten::pow.Scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def power(x, y):
    y = y + tl.zeros_like(x)
    size = tl.abs(x)
    r = exp2(y * tl.log2(size))
    whole = tl.floor(y) == y
    odd = whole & (tl.abs(y) < 9007199254740992.0) & (y - 2 * tl.floor(y * 0.5) == 1)
    r = tl.where(((x < 0) | (1 / x < 0)) & odd, -r, r)
    r = tl.where((x < 0) & (size < float("inf")) & ~whole, float("nan"), r)
    r = tl.where((x == -1) & (tl.abs(y) == float("inf")), 1.0, r)
    return tl.where((y == 0) | (x == 1), 1.0, r)


@triton.jit
def power_of_integers(x, y):
    y = y + tl.zeros_like(x)
    x = x + tl.zeros_like(y)
    left = tl.where(y < 0, 0, y)
    r = tl.full(x.shape, 1, tl.int64)
    base = x
    while tl.max(left, 0) > 0:
        r = tl.where(left & 1 == 1, r * base, r)
        base = base * base
        left = left >> 1
    unit = tl.where(x == 1, 1, tl.where(x == -1, 1 - 2 * (y & 1), 0))
    return tl.where(y < 0, unit, r)


@triton.jit
def cube(x):
    return x * x * x


@triton.jit
def reciprocal(x):
    return 1 / x


@triton.jit
def reciprocal_square(x):
    return 1 / (x * x)


def wrapper(self, exponent, *, out=None):
    dtype = common_dtype(self, exponent)
    if out is None and not isinstance(self, torch.Tensor):
        out = torch.empty(exponent.shape, dtype=dtype, device=exponent.device)
    if not dtype.is_floating_point:
        if isinstance(exponent, (int, float)) and exponent < 0:
            raise RuntimeError(f"integers cannot be raised to the negative power {exponent}")
        without_overflow(dtype, exponent)
        return elementwise(power_of_integers, self, exponent, common=torch.int64, dtype=dtype, out=out)
    if not isinstance(exponent, torch.Tensor):
        integer_powers = {1: identity, 2: square, 3: cube, -1: reciprocal, -2: reciprocal_square}
        functions = {**integer_powers, 0.5: root, -0.5: reciprocal_root}
        if exponent in functions:
            return elementwise(functions[exponent], self, common=dtype, out=out)
    common = torch.float64 if dtype == torch.float32 else dtype
    return elementwise(power, self, exponent, common=common, dtype=dtype, out=out)
