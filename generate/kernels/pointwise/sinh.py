"""aten::sinh(Tensor self) -> Tensor

(e^x - e^-x) / 2 = (u + u / (u + 1)) / 2 with u = e^|x| - 1.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.functions import expm1, with_sign

OVERLOADS = ("aten::sinh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def sinh(x):
    size = tl.abs(x)
    e = expm1(size)
    r = tl.where(size < 20, 0.5 * (e + divide(e, e + 1)), 0.5 * tl.exp(size))
    return with_sign(r, x)


def wrapper(self, *, out=None):
    return elementwise(sinh, self, to_float=True, out=out)
