"""aten::igamma(Tensor self, Tensor other) -> Tensor

Computes P(a, x), the regularized lower incomplete gamma function. All dtypes are computed in fp64.
"""

import torch
from blocks.elementwise import elementwise
from blocks.incomplete_gamma import regularized_gamma_p
from blocks.types import common_dtype

OVERLOADS = ("aten::igamma",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, other, *, out=None):
    dtype = common_dtype(self, other)
    return elementwise(regularized_gamma_p, self, other, common=torch.float64, dtype=dtype, out=out)
