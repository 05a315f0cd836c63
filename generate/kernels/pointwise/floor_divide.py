"""aten::floor_divide(Tensor self, Tensor other) -> Tensor
aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor
"""

from blocks.division import divide_whole

OVERLOADS = ("aten::floor_divide", "aten::floor_divide.Scalar")
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, other, *, out=None):
    return divide_whole(self, other, "floor", out)
