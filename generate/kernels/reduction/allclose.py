"""aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool
    equal_nan=False) -> bool

A single truth value is read back. Elements are close if their difference is at most atol + rtol * |other|.
Infinities are only close to themselves. Integers are compared as floats, or exactly if both tolerances are 0.
"""

import torch
import triton
import triton.language as tl
from blocks.reduction import reduce
from blocks.types import float_dtype

OVERLOADS = ("aten::allclose",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def near(x, y, rtol, atol):
    difference = tl.abs(x - y)
    within = (difference <= atol + tl.abs(rtol * y)) & (difference < float("inf"))
    return (within | (x == y)).to(x.dtype)


@triton.jit
def near_or_nan(x, y, rtol, atol):
    both = ((x != x) & (y != y)).to(x.dtype)
    return tl.maximum(near(x, y, rtol, atol), both)


@triton.jit
def all_near(x, n, rtol, atol):
    return x


@triton.jit
def equal_elements(x, y):
    return (x == y).to(x.dtype)


def wrapper(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if self.dtype != other.dtype or not (rtol >= 0 and atol >= 0):
        raise RuntimeError(
            f"expected one dtype and tolerances >= 0, got {self.dtype}, {other.dtype}, {rtol} and {atol}"
        )
    pair = list(torch.broadcast_tensors(self, other))
    if not self.is_floating_point() and rtol == 0 and atol == 0:
        return reduce("min", pair, None, dtype=torch.bool, map=equal_elements, common=self.dtype).item()
    map, common = near_or_nan if equal_nan else near, float_dtype(self.dtype)
    options = {"map": map, "finish": all_near, "numbers": (rtol, atol), "common": common}
    return reduce("min", pair, None, dtype=torch.bool, **options).item()
