"""aten::bitwise_not(Tensor self) -> Tensor"""

import torch
import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::bitwise_not",)
DTYPES = ("bool", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def inverted(x):
    return ~x


@triton.jit
def negated(x):
    return 1 - x


def wrapper(self, *, out=None):
    return elementwise(negated if self.dtype == torch.bool else inverted, self, out=out)
