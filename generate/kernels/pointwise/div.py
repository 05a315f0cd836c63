"""aten::div.Tensor(Tensor self, Tensor other) -> Tensor
aten::div.Scalar(Tensor self, Scalar other) -> Tensor
"""

from blocks.arithmetic import divide
from blocks.elementwise import elementwise

OVERLOADS = ("aten::div.Tensor", "aten::div.Scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, other, *, out=None):
    return elementwise(divide, self, other, to_float=True, out=out)
