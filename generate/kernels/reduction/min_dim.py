"""aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)

The index is that of the first NaN, or of the first among equal elements.
"""

import torch
from blocks.reduction import reduce, value_and_index, with_index

OVERLOADS = ("aten::min.dim",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, keepdim=False):
    if self.dim() and not self.shape[dim]:
        raise IndexError(f"dimension {dim} is empty in {tuple(self.shape)}")
    dtypes = self.dtype, torch.int64
    options = {"map": with_index, "indexed": True, "finish": value_and_index}
    return reduce("argmin", [self], [dim] if self.dim() else None, keepdim, dtype=dtypes, **options)
