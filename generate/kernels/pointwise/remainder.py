"""aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor
aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor
aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor

With the sign of the divisor. An integer divided by 0 gives 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import exact_remainder
from blocks.types import common_dtype

OVERLOADS = ("aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def remainder(x, y):
    r = exact_remainder(x, y)
    return tl.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)


@triton.jit
def remainder_of_integers(x, y):
    r = tl.where((y == 0) | (y == -1), 0, x % tl.where((y == 0) | (y == -1), 1, y))
    return tl.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)


def wrapper(self, other, *, out=None):
    function = remainder if common_dtype(self, other).is_floating_point else remainder_of_integers
    return elementwise(function, self, other, out=out)
