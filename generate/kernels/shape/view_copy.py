"""aten::view_copy(Tensor self, SymInt[] size) -> Tensor

Elements are taken in row-major order, even if no view with these sizes exists.
"""

import math

import torch
from blocks.creation import fill

OVERLOADS = ("aten::view_copy",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, size):
    known = math.prod([n for n in size if n != -1])
    shape = [self.numel() // max(known, 1) if n == -1 else n for n in size]
    if math.prod(shape) != self.numel() or len([n for n in size if n == -1]) > 1 or (-1 in size and not known):
        raise RuntimeError(f"cannot view {tuple(self.shape)} as {list(size)}")
    new = torch.empty(shape, dtype=self.dtype, device=self.device)
    fill(new.view(self.shape), self)
    return new
