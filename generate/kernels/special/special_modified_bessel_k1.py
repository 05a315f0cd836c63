"""aten::special_modified_bessel_k1(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.bessel import scaled_bessel_k1
from blocks.elementwise import elementwise

OVERLOADS = ("aten::special_modified_bessel_k1",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def bessel_k1(x):
    return tl.exp(-x) * scaled_bessel_k1(x)


def wrapper(self, *, out=None):
    return elementwise(bessel_k1, self, to_float=True, out=out)
