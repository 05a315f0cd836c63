"""aten::neg(Tensor self) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::neg",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def neg(x):
    if x.dtype.is_floating():
        x = x * -1.0  # -x is 0 - x to some versions of Triton, which makes 0 of 0
    else:
        x = -x
    return x


def wrapper(self, *, out=None):
    return elementwise(neg, self, out=out)
