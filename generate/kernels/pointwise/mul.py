"""aten::mul.Tensor(Tensor self, Tensor other) -> Tensor
aten::mul.Scalar(Tensor self, Scalar other) -> Tensor
"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::mul.Tensor", "aten::mul.Scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def mul(x, y):
    return x * y


def wrapper(self, other, *, out=None):
    return elementwise(mul, self, other, out=out)
