"""aten::special_airy_ai(Tensor x) -> Tensor

Computes the Airy function of the first kind, in fp64 for all dtypes.
"""

import torch
from blocks.airy import airy_ai
from blocks.elementwise import elementwise
from blocks.types import float_dtype

OVERLOADS = ("aten::special_airy_ai",)
DTYPES = ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(x, *, out=None):
    return elementwise(airy_ai, x, common=torch.float64, dtype=float_dtype(x.dtype), out=out)
