"""aten::digamma(Tensor self) -> Tensor"""

from blocks.elementwise import elementwise
from blocks.gamma import digamma

OVERLOADS = ("aten::digamma",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(digamma, self, to_float=True, out=out)
