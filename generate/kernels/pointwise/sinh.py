"""aten::sinh(Tensor self) -> Tensor

With u = e^|x| - 1, (e^|x| - e^-|x|) / 2 = (u + u / (u + 1)) / 2. fp64 uses this formula for |x| < 20. fp32
uses a series for |x| < 1, and e^|x| / 4 for larger arguments. The result has the sign of x.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import expm1, polynomial, quarter_exp, with_sign

OVERLOADS = ("aten::sinh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def sinh(x):
    size = tl.abs(x)
    if x.dtype.is_fp64():
        e = expm1(size)
        r = tl.where(size < 20, 0.5 * (e + e / (e + 1)), 0.5 * tl.exp(size))
    else:
        power, e = quarter_exp(size)
        quarter = power + power * e
        s = x * x
        near = size + size * s * polynomial(s, (2.806280258e-06, 0.0001983810197, 0.008333339676, 0.1666666665))
        r = tl.where(size < 1, near, 2 * quarter - 0.125 / quarter)
    return with_sign(r, x)


def wrapper(self, *, out=None):
    return elementwise(sinh, self, to_float=True, out=out)
