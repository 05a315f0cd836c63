"""aten::special_scaled_modified_bessel_k1(Tensor x) -> Tensor"""

from blocks.bessel import scaled_bessel_k1
from blocks.elementwise import elementwise

OVERLOADS = ("aten::special_scaled_modified_bessel_k1",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(x, *, out=None):
    return elementwise(scaled_bessel_k1, x, to_float=True, out=out)
