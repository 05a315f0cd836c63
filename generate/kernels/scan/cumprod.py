"""aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor

If no dtype is given, integers and bools are multiplied in int64.
"""

import torch
from blocks.scan import scan_along

OVERLOADS = ("aten::cumprod",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, *, dtype=None):
    dtype = dtype or (self.dtype if self.is_floating_point() else torch.int64)
    if dtype == torch.bool:
        raise NotImplementedError("cumprod does not support the result dtype bool")
    return scan_along("prod", self, dim, dtype)
