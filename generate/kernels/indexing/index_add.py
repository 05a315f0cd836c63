"""aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor

Adds with atomics. Narrow dtypes are accumulated in 32 bits, so that no partial sum is rounded.
"""

import math

import torch
from blocks.indexing import put

OVERLOADS = ("aten::index_add",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, source, *, alpha=1, out=None):
    if index.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"index must be int32 or int64, got {index.dtype}")
    rows = [n for d, n in enumerate(source.shape) if d != dim % max(self.dim(), 1)]
    if source.dtype != self.dtype or source.numel() != index.numel() * math.prod(rows):
        raise RuntimeError(
            f"source {source.dtype} {tuple(source.shape)} does not fit {index.numel()} indices into {self.dtype}"
        )
    if self.dim() > 1 and rows != [n for d, n in enumerate(self.shape) if d != dim % self.dim()]:
        raise RuntimeError(f"source {tuple(source.shape)} does not fit {tuple(self.shape)}")
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device) if out is None else out
    indices = [None] * (dim % max(self.dim(), 1)) + [index.view(-1)]
    return put(self, indices, source, True, alpha, out)
