"""aten::lgamma(Tensor self) -> Tensor

In fp64 for fp32: beside its zeros below 0 it is the difference of larger numbers.
"""

import torch
from blocks.elementwise import elementwise
from blocks.gamma import log_gamma
from blocks.types import float_dtype

OVERLOADS = ("aten::lgamma",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, out=None):
    return elementwise(log_gamma, self, common=torch.float64, dtype=float_dtype(self.dtype), out=out)
