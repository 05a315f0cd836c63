"""aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor
aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor
"""

import triton
from blocks.elementwise import elementwise
from blocks.functions import with_sign

OVERLOADS = ("aten::copysign.Tensor", "aten::copysign.Scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def copysign(x, y):
    return with_sign(x, y)


def wrapper(self, other, *, out=None):
    return elementwise(copysign, self, other, to_float=True, out=out)
