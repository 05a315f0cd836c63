"""aten::special_erfcx(Tensor self) -> Tensor

Computes e^(x^2) * erfc(x).
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.error_functions import exp_minus_square, scaled_erfc

OVERLOADS = ("aten::special_erfcx",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def erfcx(x):
    far = scaled_erfc(tl.abs(x))
    grown = divide(1.0 + tl.zeros_like(x), exp_minus_square(x))
    near = grown * (1 - tl.erf(x))
    r = tl.where(tl.abs(x) < 0.5, near, tl.where(x < 0, 2 * grown - far, far))
    return tl.where(x != x, x, r)


def wrapper(self, *, out=None):
    return elementwise(erfcx, self, to_float=True, out=out)
