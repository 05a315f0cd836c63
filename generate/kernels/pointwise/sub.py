"""aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::sub.Tensor", "aten::sub.Scalar")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def sub(x, y, alpha):
    return x - y * alpha


def wrapper(self, other, alpha=1, *, out=None):
    return elementwise(sub, self, other, numbers=(alpha,), out=out)
