"""aten::isnan(Tensor self) -> Tensor"""

import torch
import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::isnan",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def isnan(x):
    return x != x


def wrapper(self, *, out=None):
    return elementwise(isnan, self, dtype=torch.bool, out=out)
