"""aten::isposinf(Tensor self) -> Tensor"""

import torch
import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::isposinf",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def isposinf(x):
    return (x > 0) & (x - x != x - x)


def wrapper(self, *, out=None):
    return elementwise(isposinf, self, dtype=torch.bool, out=out)
