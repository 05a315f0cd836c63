"""aten::special_spherical_bessel_j0(Tensor x) -> Tensor

Computes sin(x) / x, with its power series for |x| < 0.5.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise

OVERLOADS = ("aten::special_spherical_bessel_j0",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def spherical_bessel_j0(x):
    s = x * x
    near = (s * 1.6059043836821613e-10 - 2.505210838544172e-08) * s + 2.7557319223985893e-06
    near = (((near * s - 0.0001984126984126984) * s + 0.008333333333333333) * s - 0.16666666666666666) * s + 1
    r = tl.where(tl.abs(x) < 0.5, near, divide(tl.sin(x), x))
    return tl.where((x == float("inf")) | (x == float("-inf")), 0.0, r)


def wrapper(x, *, out=None):
    return elementwise(spherical_bessel_j0, x, to_float=True, out=out)
