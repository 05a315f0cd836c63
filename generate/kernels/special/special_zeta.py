"""aten::special_zeta(Tensor self, Tensor other) -> Tensor
aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor
aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor
"""

from blocks.elementwise import elementwise
from blocks.gamma import hurwitz_zeta

OVERLOADS = ("aten::special_zeta", "aten::special_zeta.other_scalar", "aten::special_zeta.self_scalar")
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, other, *, out=None):
    return elementwise(hurwitz_zeta, self, other, to_float=True, out=out)
