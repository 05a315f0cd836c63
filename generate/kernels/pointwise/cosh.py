"""aten::cosh(Tensor self) -> Tensor

Computes (e^x + e^-x) / 2. In fp64 it comes from e^(|x|/2), and in fp32 from e^|x| / 4. Neither overflows
before the result does.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import quarter_exp

OVERLOADS = ("aten::cosh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def cosh(x):
    if x.dtype.is_fp64():
        half = tl.exp(0.5 * tl.abs(x))
        r = (0.5 * half) * half + 0.5 / half / half
    else:
        power, e = quarter_exp(tl.abs(x))
        quarter = power + power * e
        r = 2 * quarter + 0.125 / quarter
    return r


def wrapper(self, *, out=None):
    return elementwise(cosh, self, to_float=True, out=out)
