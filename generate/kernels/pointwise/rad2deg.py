"""aten::rad2deg(Tensor self) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::rad2deg",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def rad2deg_of(x):
    return x * 57.29577951308232


def wrapper(self, *, out=None):
    return elementwise(rad2deg_of, self, to_float=True, out=out)
