"""aten::special_xlog1py(Tensor self, Tensor other) -> Tensor
aten::special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor
aten::special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor

Computes x * log1p(y). The result is NaN if y is NaN, and otherwise 0 if x == 0.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p

OVERLOADS = ("aten::special_xlog1py", "aten::special_xlog1py.other_scalar", "aten::special_xlog1py.self_scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def special_xlog1py(x, y):
    return tl.where(y != y, y, tl.where(x == 0, 0.0, x * log1p(y)))


def wrapper(self, other, *, out=None):
    return elementwise(special_xlog1py, self, other, to_float=True, out=out)
