"""aten::asinh(Tensor self) -> Tensor

Computes log(|x| + sqrt(x^2 + 1)) by log1p of the argument minus 1, which stays accurate near 0. The result
has the sign of x.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p, with_sign

OVERLOADS = ("aten::asinh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def asinh(x):
    size = tl.abs(x)
    far = size > 1e9
    r = log1p(tl.where(far, size - 1, size + size * size / (1 + tl.sqrt(size * size + 1))))
    return with_sign(tl.where(far, r + 0.6931471805599453, r), x)


def wrapper(self, *, out=None):
    return elementwise(asinh, self, to_float=True, out=out)
