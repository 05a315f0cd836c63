"""aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)

The sort is always stable. NaN counts as larger than all numbers.
"""

import torch
from blocks.sorting import sort_into

OVERLOADS = ("aten::sort", "aten::sort.stable")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=-1, descending=False, *, stable=None):
    outs = [torch.empty_like(self, dtype=dtype) for dtype in (self.dtype, torch.int64)]
    return sort_into(self, dim, outs, descending)
