"""aten::igamma(Tensor self, Tensor other) -> Tensor

P(a, x), the regularised lower incomplete gamma function; in fp64 for narrower types.
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
