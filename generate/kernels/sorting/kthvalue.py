"""aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)

Equal elements are ranked by position. NaN counts as larger than all numbers.
"""

import torch
from blocks.ranked import ranked, row_results

OVERLOADS = ("aten::kthvalue",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, k, dim=-1, keepdim=False):
    outs = row_results(self, dim, keepdim)
    if self.dtype == torch.bool or not 1 <= k <= (self.shape[dim] if self.dim() else 1):
        raise RuntimeError(f"k={k} does not fit {self.dtype} {tuple(self.shape)} along dimension {dim}")
    return ranked("kth", self, [dim % self.dim()] if self.dim() else [], outs, k - 1)
