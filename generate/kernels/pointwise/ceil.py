"""aten::ceil(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise

OVERLOADS = ("aten::ceil",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def ceil(x):
    return tl.ceil(x)


def wrapper(self, *, out=None):
    return elementwise(ceil if self.is_floating_point() else identity, self, out=out)
