"""aten::sign(Tensor self) -> Tensor"""

from blocks.arithmetic import sign_of
from blocks.elementwise import elementwise

OVERLOADS = ("aten::sign",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(sign_of, self, out=out)
