"""aten::erfinv(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.error_functions import inverse_erf
from blocks.functions import with_sign

OVERLOADS = ("aten::erfinv",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def erfinv(x):
    size = tl.abs(x)
    return with_sign(inverse_erf(size, 1 - size), x)


def wrapper(self, *, out=None):
    return elementwise(erfinv, self, to_float=True, out=out)
