"""aten::exp(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::exp",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def exp(x):
    return tl.exp(x)


def wrapper(self, *, out=None):
    return elementwise(exp, self, to_float=True, out=out)
