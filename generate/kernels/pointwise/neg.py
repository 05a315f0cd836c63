"""aten::neg(Tensor self) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::neg",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def neg(x):
    # Some versions of Triton take -x for 0 - x, which makes 0 of 0.
    return x * -1.0 if x.dtype.is_floating() else -x


def wrapper(self, *, out=None):
    return elementwise(neg, self, out=out)
