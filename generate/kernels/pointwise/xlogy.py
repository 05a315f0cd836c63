"""aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor
aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor
aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor

Computes x * log(y). The result is NaN if y is NaN, and otherwise 0 if x == 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::xlogy.Tensor", "aten::xlogy.Scalar_Other", "aten::xlogy.Scalar_Self")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def xlogy(x, y):
    return tl.where(y != y, y, tl.where(x == 0, 0.0, x * tl.log(y)))


def wrapper(self, other, *, out=None):
    return elementwise(xlogy, self, other, to_float=True, out=out)
