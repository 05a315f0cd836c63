"""aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"""

import torch
from blocks.indexing import put_last

OVERLOADS = ("aten::index_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim, index, source, *, out=None):
    if index.dtype != torch.int64 or source.dtype != self.dtype:
        raise RuntimeError(f"expected an int64 index and a {self.dtype} source, got {index.dtype} and {source.dtype}")
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device) if out is None else out
    d = dim % max(self.dim(), 1)
    expected = (*self.shape[:d], index.numel(), *self.shape[d + 1 :])
    if source.numel() == 1 and index.numel() == 1 and not (self.dim() and source.dim()):
        source = source.view([]).expand(expected if self.dim() else (1,))
    elif source.shape != expected:
        raise RuntimeError(f"expected a source {expected}, got {tuple(source.shape)}")
    return put_last(self, [None] * d + [index.view(-1)], source, out)
