"""aten::atan2(Tensor self, Tensor other) -> Tensor"""

from blocks.elementwise import elementwise
from blocks.functions import arctangent_of

OVERLOADS = ("aten::atan2",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, other, *, out=None):
    return elementwise(arctangent_of, self, other, to_float=True, out=out)
