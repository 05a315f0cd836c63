"""aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor

If the shift count is negative or at least the bit width, the result is 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import common_dtype

OVERLOADS = ("aten::bitwise_left_shift.Tensor",)
DTYPES = ("int16", "int32", "int64", "int8", "uint8")


@triton.jit
def shifted_left(x, y, bits):
    return tl.where((y < 0) | (y >= bits), 0, x << tl.where((y < 0) | (y >= bits), 0, y))


def wrapper(self, other, *, out=None):
    return elementwise(shifted_left, self, other, numbers=(8 * common_dtype(self, other).itemsize,), out=out)
