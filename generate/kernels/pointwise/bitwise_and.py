"""aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::bitwise_and.Tensor",)
DTYPES = ("bool", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def bitwise_and(x, y):
    return x & y


def wrapper(self, other, *, out=None):
    return elementwise(bitwise_and, self, other, out=out)
