"""aten::special_zeta(Tensor self, Tensor other) -> Tensor
aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor
aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor

In fp64 for fp32, since powers amplify the rounding of logarithms.
"""

import torch
from blocks.elementwise import elementwise
from blocks.gamma import hurwitz_zeta
from blocks.types import common_dtype, float_dtype

OVERLOADS = ("aten::special_zeta", "aten::special_zeta.other_scalar", "aten::special_zeta.self_scalar")
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, other, *, out=None):
    dtype = float_dtype(common_dtype(self, other))
    return elementwise(hurwitz_zeta, self, other, common=torch.float64, dtype=dtype, out=out)
