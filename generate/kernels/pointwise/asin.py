"""aten::asin(Tensor self) -> Tensor

In fp64, the result is the angle with sine x and cosine sqrt(1 - x^2). In fp32, it comes from
`folded_arcsine`.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import arctangent_of, folded_arcsine, with_sign

OVERLOADS = ("aten::asin",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def asin(x):
    if x.dtype.is_fp64():
        r = arctangent_of(x, tl.sqrt((1 - x) * (1 + x)))
    else:
        far, angle = folded_arcsine(x)
        r = with_sign(tl.where(far, 1.5707963267948966 - 2 * angle, angle), x)
    return r


def wrapper(self, *, out=None):
    return elementwise(asin, self, to_float=True, out=out)
