"""aten::index_select(Tensor self, int dim, Tensor index) -> Tensor

The result is contiguous.
"""

import torch
from blocks.indexing import gather

OVERLOADS = ("aten::index_select",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index):
    if index.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"index must be int32 or int64, got {index.dtype}")
    if index.dim() > 1:
        raise IndexError(f"index must have at most one dimension, got {index.dim()}")
    if self.dim() == 0 and index.numel() != 1:
        raise RuntimeError(f"a tensor without dimensions needs one index, got {index.numel()}")
    x = self.unsqueeze(0) if self.dim() == 0 else self
    dim = dim % x.dim()
    shape = [*x.shape[:dim], index.numel(), *x.shape[dim + 1 :]]
    out = torch.empty(shape if self.dim() else (), dtype=self.dtype, device=self.device)
    gather(x, [None] * dim + [index.view(-1)], out.view(shape))
    return out
