"""aten::special_i1e(Tensor self) -> Tensor"""

from blocks.bessel import scaled_bessel_i1
from blocks.elementwise import elementwise

OVERLOADS = ("aten::special_i1e",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(scaled_bessel_i1, self, to_float=True, out=out)
