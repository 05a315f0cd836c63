"""aten::signbit(Tensor self) -> Tensor"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.functions import is_negative

OVERLOADS = ("aten::signbit",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def signbit(x):
    return is_negative(x)


def wrapper(self, *, out=None):
    return elementwise(signbit, self, dtype=torch.bool, out=out)
