"""aten::acos(Tensor self) -> Tensor

In fp64, the result is twice the angle whose tangent is sqrt((1 - x) / (1 + x)). In fp32, it comes from
`folded_arcsine`.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import arctangent_of, folded_arcsine, with_sign

OVERLOADS = ("aten::acos",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def acos(x):
    if x.dtype.is_fp64():
        r = 2 * arctangent_of(tl.sqrt(1 - x), tl.sqrt(1 + x))
    else:
        far, angle = folded_arcsine(x)
        near = 1.5707963267948966 - with_sign(angle, x)
        r = tl.where(far, tl.where(x < 0, 3.141592653589793 - 2 * angle, 2 * angle), near)
    return r


def wrapper(self, *, out=None):
    return elementwise(acos, self, to_float=True, out=out)
