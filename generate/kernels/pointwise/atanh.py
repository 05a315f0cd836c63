"""aten::atanh(Tensor self) -> Tensor

Computes log((1 + |x|) / (1 - |x|)) / 2 by log1p, with the sign of x.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p, with_sign

OVERLOADS = ("aten::atanh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def atanh(x):
    size = tl.abs(x)
    return with_sign(0.5 * log1p(2 * size / (1 - size)), x)


def wrapper(self, *, out=None):
    return elementwise(atanh, self, to_float=True, out=out)
