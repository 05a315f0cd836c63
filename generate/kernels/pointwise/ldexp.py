"""aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor"""

import triton
from blocks.elementwise import elementwise
from blocks.functions import exp2

OVERLOADS = ("aten::ldexp.Tensor",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def ldexp(x, y):
    return x * exp2(y)


def wrapper(self, other, *, out=None):
    return elementwise(ldexp, self, other, to_float=True, out=out)
