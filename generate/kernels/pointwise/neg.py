"""aten::neg(Tensor self) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::neg",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def neg(x):
    return -x


def wrapper(self, *, out=None):
    return elementwise(neg, self, out=out)
