"""aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor

The condition is a bool, or a byte that is true where it is not zero.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.types import common_dtype

OVERLOADS = ("aten::where.self",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def where(condition, x, y):
    return tl.where(condition != 0, x, y)


def wrapper(condition, self, other, *, out=None):
    return elementwise(where, condition, self, other, common=common_dtype(self, other), out=out)
