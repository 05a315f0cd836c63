"""aten::flip(Tensor self, int[] dims) -> Tensor"""

import torch
from blocks.regions import arranged

OVERLOADS = ("aten::flip",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dims):
    reverse = [d % max(self.dim(), 1) for d in dims]
    if len(set(reverse)) < len(reverse):
        raise RuntimeError(f"dims must not repeat, got {list(dims)}")
    reverse = [d for d in reverse if d < self.dim()]
    return arranged(self, torch.empty_like(self), reverse=reverse)
