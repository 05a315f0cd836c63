"""aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""

import triton
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow
from blocks.types import common_dtype

OVERLOADS = ("aten::addcmul",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def addcmul(x, y, z, value):
    return x + value * y * z


def wrapper(self, tensor1, tensor2, *, value=1, out=None):
    dtype = common_dtype(self, tensor1, tensor2)
    if not dtype.is_floating_point:
        without_overflow(dtype, value)
    return elementwise(addcmul, self, tensor1, tensor2, numbers=(value,), out=out)
