"""aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor

Unused rows at the end hold fill_value.
"""

import torch
from blocks.creation import fill
from blocks.selection import true_indices, true_starts

OVERLOADS = ("aten::nonzero_static",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, *, size, fill_value=-1):
    if size < 0:
        raise RuntimeError(f"size must be >= 0, got {size}")
    out = torch.empty((size, self.dim()), dtype=torch.int64, device=self.device)
    return true_indices(self, true_starts(self), fill(out, fill_value), size)
