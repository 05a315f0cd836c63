"""aten::tan(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise

OVERLOADS = ("aten::tan",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def tan_of(x):
    return divide(tl.sin(x), tl.cos(x))


def wrapper(self, *, out=None):
    return elementwise(tan_of, self, to_float=True, out=out)
