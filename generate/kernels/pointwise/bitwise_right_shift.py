"""aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor

If the shift count is negative or at least the bit width, only the sign remains.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import common_dtype

OVERLOADS = ("aten::bitwise_right_shift.Tensor",)
DTYPES = ("int16", "int32", "int64", "int8", "uint8")


@triton.jit
def shifted_right(x, y, last):
    return x >> tl.where((y < 0) | (y >= last), last, y)


def wrapper(self, other, *, out=None):
    dtype = common_dtype(self, other)
    last = 8 * dtype.itemsize - dtype.is_signed
    return elementwise(shifted_right, self, other, numbers=(last,), out=out)
