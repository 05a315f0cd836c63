"""aten::logical_or(Tensor self, Tensor other) -> Tensor"""

import torch
import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::logical_or",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def logical_or(x, y):
    return (x != 0) | (y != 0)


def wrapper(self, other, *, out=None):
    return elementwise(logical_or, self, other, dtype=torch.bool, out=out)
