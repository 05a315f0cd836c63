"""aten::abs(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::abs",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def absolute(x):
    return tl.abs(x)


def wrapper(self, *, out=None):
    return elementwise(absolute, self, out=out)
