"""aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor

blocks/norms.py defines the norm for each order; None means 2.
"""

import torch
from blocks.norms import norm_of_order
from blocks.reduction import reduce

OVERLOADS = ("aten::norm.ScalarOpt_dim",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, p, dim, keepdim=False):
    kind, map, finish, numbers, value = norm_of_order(2 if p is None else p)
    value = torch.float64 if self.dtype == torch.float64 else value
    options = {"map": map, "finish": finish, "numbers": numbers, "values": (value,)}
    return reduce(kind, [self], dim, keepdim, dtype=self.dtype, **options)
