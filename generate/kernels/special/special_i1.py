"""aten::special_i1(Tensor self) -> Tensor"""

from blocks.bessel import bessel_i1
from blocks.elementwise import elementwise

OVERLOADS = ("aten::special_i1",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(bessel_i1, self, to_float=True, out=out)
