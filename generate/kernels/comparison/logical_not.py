"""aten::logical_not(Tensor self) -> Tensor"""

import torch
import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::logical_not",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def logical_not(x):
    return x == 0


def wrapper(self, *, out=None):
    return elementwise(logical_not, self, dtype=torch.bool, out=out)
