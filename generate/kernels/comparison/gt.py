"""aten::gt.Tensor(Tensor self, Tensor other) -> Tensor
aten::gt.Scalar(Tensor self, Scalar other) -> Tensor

A Python number is rounded to the common dtype before the comparison.
"""

import torch
import triton
from blocks.elementwise import elementwise
from blocks.types import common_dtype, rounded

OVERLOADS = ("aten::gt.Tensor", "aten::gt.Scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def gt(x, y):
    return x > y


def wrapper(self, other, *, out=None):
    other = other if isinstance(other, torch.Tensor) else rounded(other, common_dtype(self, other))
    return elementwise(gt, self, other, dtype=torch.bool, out=out)
