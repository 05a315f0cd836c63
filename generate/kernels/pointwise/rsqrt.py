"""aten::rsqrt(Tensor self) -> Tensor"""

from blocks.arithmetic import reciprocal_root
from blocks.elementwise import elementwise

OVERLOADS = ("aten::rsqrt",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(reciprocal_root, self, to_float=True, out=out)
