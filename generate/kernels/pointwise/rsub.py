"""aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
"""

import triton
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow
from blocks.types import common_dtype

OVERLOADS = ("aten::rsub.Tensor", "aten::rsub.Scalar")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def rsub(y, x, alpha):
    return y - x * alpha


def wrapper(self, other, alpha=1, *, out=None):
    dtype = common_dtype(self, other)
    if not dtype.is_floating_point:
        without_overflow(dtype, alpha)
    return elementwise(rsub, other, self, numbers=(alpha,), out=out)
