"""aten::erfc(Tensor self) -> Tensor"""

from blocks.elementwise import elementwise
from blocks.error_functions import complementary_erf

OVERLOADS = ("aten::erfc",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(complementary_erf, self, to_float=True, out=out)
