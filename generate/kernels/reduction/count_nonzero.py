"""aten::count_nonzero(Tensor self, int? dim=None) -> Tensor
aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor

NaN counts as nonzero.
"""

import torch
import triton
import triton.language as tl
from blocks.reduction import reduce

OVERLOADS = ("aten::count_nonzero", "aten::count_nonzero.dim_IntList")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def one_if_true(x):
    return x.to(tl.int64)


def wrapper(self, dim=None):
    dim = [dim] if isinstance(dim, int) else dim
    options = {"map": one_if_true, "common": torch.bool, "values": (torch.int64,)}
    return reduce("sum", [self], dim, dtype=torch.int64, **options)
