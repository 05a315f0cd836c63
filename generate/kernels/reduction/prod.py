"""aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor

If no dtype is given, integers and bools are multiplied in int64.
"""

import torch
from blocks.reduction import reduce

OVERLOADS = ("aten::prod", "aten::prod.dim_int")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, keepdim=False, *, dtype=None):
    dtype = dtype or (self.dtype if self.is_floating_point() else torch.int64)
    return reduce("prod", [self], None if dim is None else [dim], keepdim, dtype=dtype)
