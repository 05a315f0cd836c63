"""aten::floor(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise

OVERLOADS = ("aten::floor",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def floor(x):
    return tl.floor(x)


def wrapper(self, *, out=None):
    return elementwise(floor if self.is_floating_point() else identity, self, out=out)
