"""aten::expm1(Tensor self) -> Tensor"""

from blocks.elementwise import elementwise
from blocks.functions import expm1

OVERLOADS = ("aten::expm1",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(expm1, self, to_float=True, out=out)
