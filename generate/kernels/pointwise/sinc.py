"""aten::sinc(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import sin

OVERLOADS = ("aten::sinc",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def sinc_of(x):
    angle = x * 3.141592653589793
    return tl.where(angle == 0, 1.0, sin(angle) / angle)


def wrapper(self, *, out=None):
    return elementwise(sinc_of, self, to_float=True, out=out)
