"""aten::special_bessel_j0(Tensor self) -> Tensor

Computes the Bessel function of the first kind with order 0, in fp64 for all dtypes.
"""

import torch
from blocks.cylinder_functions import cylinder_j0
from blocks.elementwise import elementwise
from blocks.types import float_dtype

OVERLOADS = ("aten::special_bessel_j0",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(cylinder_j0, self, common=torch.float64, dtype=float_dtype(self.dtype), out=out)
