"""aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor"""

import triton
from blocks.arithmetic import divide
from blocks.elementwise import elementwise

OVERLOADS = ("aten::addcdiv",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def addcdiv(x, y, z, value):
    return x + value * divide(y, z)


def wrapper(self, tensor1, tensor2, *, value=1, out=None):
    return elementwise(addcdiv, self, tensor1, tensor2, numbers=(value,), out=out)
