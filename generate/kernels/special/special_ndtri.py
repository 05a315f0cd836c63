"""aten::special_ndtri(Tensor self) -> Tensor

The number below which a share p of the normal distribution lies.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.error_functions import inverse_erf

OVERLOADS = ("aten::special_ndtri",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def ndtri(p):
    rest = 2 * tl.where(p < 0.5, p, 1 - p)
    y = 1.4142135623730951 * inverse_erf(1 - rest, rest)
    return tl.where(p < 0.5, y * -1.0, y)


def wrapper(self, *, out=None):
    return elementwise(ndtri, self, to_float=True, out=out)
