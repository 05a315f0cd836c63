"""aten::reciprocal(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise

OVERLOADS = ("aten::reciprocal",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def reciprocal(x):
    return divide(tl.full(x.shape, 1, x.dtype), x)


def wrapper(self, *, out=None):
    return elementwise(reciprocal, self, to_float=True, out=out)
