"""aten::deg2rad(Tensor self) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::deg2rad",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def deg2rad_of(x):
    return x * 0.017453292519943295


def wrapper(self, *, out=None):
    return elementwise(deg2rad_of, self, to_float=True, out=out)
