"""aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::bitwise_or.Tensor",)
DTYPES = ("bool", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def bitwise_or(x, y):
    return x | y


def wrapper(self, other, *, out=None):
    return elementwise(bitwise_or, self, other, out=out)
