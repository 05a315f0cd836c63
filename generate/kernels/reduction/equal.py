"""aten::equal(Tensor self, Tensor other) -> bool

A single truth value is read back. NaN is not equal to anything.
"""

import torch
import triton
from blocks.reduction import reduce
from blocks.types import common_dtype

OVERLOADS = ("aten::equal",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def same(x, y):
    return (x == y).to(x.dtype)


def wrapper(self, other):
    if self.shape != other.shape:
        return False
    common = common_dtype(self, other)
    return reduce("min", [self, other], None, dtype=torch.bool, map=same, common=common).item()
