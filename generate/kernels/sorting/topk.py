"""aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)

The result is always sorted, and equal elements keep their order. NaN counts as larger than all numbers.
"""

import torch
from blocks.sorting import sort_into

OVERLOADS = ("aten::topk",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, k, dim=-1, largest=True, sorted=True):
    if self.dtype == torch.bool:
        raise RuntimeError("topk does not support bool")
    if not 0 <= k <= (self.shape[dim] if self.dim() else 1):
        raise RuntimeError(f"k={k} is out of range for dimension {dim} in {tuple(self.shape)}")
    shape = list(self.shape)
    if shape:
        shape[dim] = k
    outs = [torch.empty(shape, dtype=dtype, device=self.device) for dtype in (self.dtype, torch.int64)]
    return sort_into(self, dim, outs, largest)
