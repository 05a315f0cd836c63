"""aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor

NaN stays NaN. If min > max, the result is max.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow
from blocks.types import common_dtype

OVERLOADS = ("aten::clamp",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def at_least(x, low):
    return tl.where((x >= low) | (x != x), x, low)


@triton.jit
def at_most(x, high):
    return tl.where((x <= high) | (x != x), x, high)


@triton.jit
def clamp(x, low, high):
    return at_most(at_least(x, low), high)


def wrapper(self, min=None, max=None, *, out=None):
    dtype = common_dtype(self, *[x for x in (min, max) if x is not None])
    if not dtype.is_floating_point:
        without_overflow(dtype, min, max)
    if max is None:
        return elementwise(at_least, self, min, out=out)
    return elementwise(at_most, self, max, out=out) if min is None else elementwise(clamp, self, min, max, out=out)
