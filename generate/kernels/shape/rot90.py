"""aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor

Makes a reversed copy and then swaps two of its dimensions.
"""

import torch
from blocks.copies import copied
from blocks.regions import arranged

OVERLOADS = ("aten::rot90",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, k=1, dims=(0, 1)):
    a, b = dims
    if self.dim() < 2 or not all([-self.dim() <= d < self.dim() for d in dims]) or (a - b) % self.dim() == 0:
        raise RuntimeError(
            f"rot90 needs two different dimensions in a tensor with at least two, got {list(dims)} for {self.dim()}"
        )
    a, b, k = a % self.dim(), b % self.dim(), k % 4
    if k == 0:
        return copied(self)
    reverse = {1: [b], 2: [a, b], 3: [a]}[k]
    out = arranged(self, torch.empty_like(self), reverse=reverse)
    return out if k == 2 else out.transpose(a, b)
